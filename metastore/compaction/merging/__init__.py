"""Merging of a compaction's files in their present order."""
