"""Aider's chat histories read into events."""
