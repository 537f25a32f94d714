"""Notes on disk: the markdown that is the truth."""
