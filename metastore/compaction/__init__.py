"""Compaction: the queue of requests, when one is due, who works on it, and what may be cleaned afterwards."""
