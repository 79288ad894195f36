"""Batches of streaming queries."""
