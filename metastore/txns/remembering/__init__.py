"""How transactions get into ``txn_history``."""
