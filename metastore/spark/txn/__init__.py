"""Transactions on Spark's side: their locks, snapshots and statements, and the end of their reads."""
