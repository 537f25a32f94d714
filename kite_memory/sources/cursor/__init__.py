"""Parse Cursor's conversations, of its editor and its command line, into events."""
