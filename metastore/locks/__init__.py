"""Locks: concurrent work on objects, and the waits for each other."""
