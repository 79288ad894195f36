"""Which tables a transaction reads, if it says so: the Cleaner waits for it with these only."""
