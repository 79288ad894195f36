"""Transactions: opening, committing, aborting, keeping alive, and what readers are told of them."""
