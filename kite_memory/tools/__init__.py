"""What agents may call, over a store: memories, conversations, states, notes; and the store of this machine."""
