"""The operating system: private files, SQLite, checksums, directory listings, editors' folders."""
