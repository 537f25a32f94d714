"""Parse Goose's sessions into events."""
