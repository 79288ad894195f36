"""What is due for compaction."""
