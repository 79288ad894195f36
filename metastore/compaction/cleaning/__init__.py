"""Cleaning: the removal of leftovers of compactions and aborts."""
