"""Which two notes help now, or none."""
