"""What became of a transaction."""
