"""What the last listings of tables and partitions found."""
