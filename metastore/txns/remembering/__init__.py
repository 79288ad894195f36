"""The way of transactions into ``txn_history``."""
