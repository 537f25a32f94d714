"""The values that walk through the house. No I/O here, and no imports of ours from outside this folder."""
