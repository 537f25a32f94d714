"""Parse Aider's chat histories into events."""
