"""The execution of a compaction."""
