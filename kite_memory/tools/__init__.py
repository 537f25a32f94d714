"""Tools for agents over a store: memories, conversations, states and notes; and this machine's own store."""
