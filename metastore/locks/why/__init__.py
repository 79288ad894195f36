"""Explanations of waits."""
