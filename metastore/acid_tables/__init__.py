"""Snapshots of ACID tables: kind, partitions, directories, files and deleted rows.

Rule: every reader and compaction of such a table uses this package, in Spark or without it. Nothing here knows Spark or
a server.
"""
