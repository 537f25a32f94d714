"""The use cases, which daemon and command line both run."""
