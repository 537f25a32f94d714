"""Gemini CLI's sessions read into events."""
