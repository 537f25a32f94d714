"""Parse Qwen Code's sessions into events."""
