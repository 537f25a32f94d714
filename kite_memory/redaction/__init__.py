"""What must never be stored, taken out at the door."""
