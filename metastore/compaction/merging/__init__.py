"""Merging the files of a compaction as they lie."""
