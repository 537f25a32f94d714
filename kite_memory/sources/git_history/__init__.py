"""The commits of known repositories read into events."""
