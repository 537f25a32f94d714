"""The background process that watches transcripts, extracts notes and answers requests."""
