"""Rows about waiting."""
