"""The settings of the agents we hook into."""
