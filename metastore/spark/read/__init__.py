"""Reads of a snapshot's rows: the files to read, one scan over them, and the removal of deleted rows."""
