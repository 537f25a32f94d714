"""Construction of all components from the configuration: the only package that chooses implementations."""
