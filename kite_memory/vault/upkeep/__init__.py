"""Notes that are merged, split, archived or let fade."""
