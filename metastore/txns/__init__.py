"""Transactions: opening, committing, aborting, keeping alive, and what readers see of them."""
