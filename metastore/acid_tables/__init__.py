"""What a snapshot of an ACID table is read from: its kind, partitions, directories, files and deleted rows.

Rule: whoever reads or compacts such a table asks here, in Spark or without one; nothing here knows Spark or a server.
"""
