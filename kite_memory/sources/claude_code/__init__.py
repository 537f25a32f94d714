"""Parse Claude Code's transcripts into events."""
