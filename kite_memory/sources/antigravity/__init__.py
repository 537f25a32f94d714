"""Parse Google Antigravity's conversations into events."""
