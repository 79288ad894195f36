"""What a snapshot of an ACID table is read from: its kind, partitions, directories, files and deleted rows.

Rule: every reader and compaction of such a table uses this package, in Spark or without it. Nothing here knows Spark or
a server.
"""
