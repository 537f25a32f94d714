"""Claude Code's transcripts read into events."""
