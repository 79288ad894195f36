"""Requests for compactions, from the first to the last."""
