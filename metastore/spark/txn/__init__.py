"""Transactions from Spark's side: their locks, snapshots, statements, and how long a read keeps them open."""
