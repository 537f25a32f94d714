"""Transcripts of agents parsed into events, one module or folder per agent."""
