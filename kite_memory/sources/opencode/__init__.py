"""OpenCode's sessions read into events."""
