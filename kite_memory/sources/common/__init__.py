"""What every agent's reader needs: files and databases read on from a cursor, fields taken out of rows, events built."""
