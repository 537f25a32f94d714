"""A team's memory: PostgreSQL and object storage, and asking it from a prompt or a search."""
