"""Transactions while they live: opening, heartbeats, aborts, snapshots."""
