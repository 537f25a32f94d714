"""Use cases, which both the daemon and the command line run."""
