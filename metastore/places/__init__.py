"""Places on file systems: their owners, and the rules for new ones."""
