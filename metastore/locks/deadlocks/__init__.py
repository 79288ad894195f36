"""Deadlocks: requests that wait for each other in a circle."""
