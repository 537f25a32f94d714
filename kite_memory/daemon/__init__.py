"""The process that watches, distils and answers."""
