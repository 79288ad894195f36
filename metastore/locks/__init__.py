"""Locks: who may work on what at the same time, and who waits for whom."""
