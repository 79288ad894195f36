"""The outcomes of transactions."""
