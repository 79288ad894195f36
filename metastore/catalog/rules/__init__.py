"""What the catalog accepts and decides: pure functions."""
