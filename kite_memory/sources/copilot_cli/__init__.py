"""GitHub Copilot CLI's sessions read into events."""
