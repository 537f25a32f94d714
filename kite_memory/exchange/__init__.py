"""Import from other memories, and export of this one."""
