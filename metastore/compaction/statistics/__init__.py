"""Column statistics from the pass of a major compaction."""
