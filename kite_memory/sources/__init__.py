"""One file per agent: its transcripts read into events."""
