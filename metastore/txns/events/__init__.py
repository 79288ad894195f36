"""The notification log."""
