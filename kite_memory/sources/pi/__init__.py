"""Parse Pi's sessions into events."""
