"""The timeline on a terminal, to walk about in."""
