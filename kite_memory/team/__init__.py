"""Shared memory of a team: PostgreSQL and object storage, and queries to it from prompts and searches."""
