"""Parse OpenCode's sessions into events."""
