"""Parse Factory Droid's sessions into events."""
