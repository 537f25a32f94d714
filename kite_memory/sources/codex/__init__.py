"""Codex's rollouts read into events."""
