"""The work of a compaction."""
