"""Google Antigravity's conversations read into events."""
