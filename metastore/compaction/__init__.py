"""Compaction: the queue of requests, the rules for due compactions, the work on them, and the cleaning afterwards."""
