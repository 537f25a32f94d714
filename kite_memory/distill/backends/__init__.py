"""Models: what is asked and how a call ends, for Anthropic, claude -p and chat completions."""
