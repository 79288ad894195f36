"""The last listings of tables and partitions."""
