"""Import from other memories, and export of ours."""
