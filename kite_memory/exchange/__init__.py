"""Taking in what other memories hold, and handing out what ours does."""
