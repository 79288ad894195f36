"""Tables that a transaction declares to read: the Cleaner waits for it with these only."""
