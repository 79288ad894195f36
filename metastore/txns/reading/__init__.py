"""Tables that a transaction declares to read: it delays the cleaning of these tables only."""
