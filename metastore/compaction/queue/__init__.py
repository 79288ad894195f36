"""Requests for compactions, from the first state to the last."""
