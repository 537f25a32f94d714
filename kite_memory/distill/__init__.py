"""What it meant: chunks of events become records."""
