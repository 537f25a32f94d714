"""Parse Gemini CLI's sessions into events."""
