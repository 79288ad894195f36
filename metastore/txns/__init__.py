"""Transactions: opening, committing, aborting, keeping alive, and the snapshots of readers."""
