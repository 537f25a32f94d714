"""Access to the operating system: private files, locks, SQLite, checksums, directory listings, editors' folders."""
