"""Exchange of one person's memory between their machines, through files that each machine only adds to."""
