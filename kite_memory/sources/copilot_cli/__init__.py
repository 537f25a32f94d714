"""Parse GitHub Copilot CLI's sessions into events."""
