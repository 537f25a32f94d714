"""Parse Codex's rollouts into events."""
