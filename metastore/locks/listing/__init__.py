"""The listing of all locks for show_locks."""
