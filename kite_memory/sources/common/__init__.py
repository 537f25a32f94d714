"""Code shared by all sources: reading files and databases from a cursor, extracting fields from records, building events."""
