"""Cursor's conversations, of its editor and its command line, read into events."""
