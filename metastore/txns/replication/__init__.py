"""Transactions of a source warehouse, replayed here."""
