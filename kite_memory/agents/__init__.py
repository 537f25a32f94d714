"""Settings of the agents that we integrate with."""
