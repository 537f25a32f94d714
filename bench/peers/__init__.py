"""Other programs that search an agent's past sessions, asked the same questions as ours: `python -m bench.peers`."""
