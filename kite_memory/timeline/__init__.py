"""The timeline: sessions, events and edges in SQLite."""
