"""Parse the commits of known repositories into events."""
