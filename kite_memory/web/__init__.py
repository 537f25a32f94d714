"""The page of this machine's memory, for its owner alone."""
