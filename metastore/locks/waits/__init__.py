"""Rows about waits."""
