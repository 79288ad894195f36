"""Compaction: the queue of requests, when a compaction is due, who works on it, and what may be cleaned afterwards."""
