"""From the configuration to running parts: the only place that knows which adapter is which."""
