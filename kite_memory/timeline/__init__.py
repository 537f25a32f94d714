"""What happened: sessions, events and edges in SQLite."""
