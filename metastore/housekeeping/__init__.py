"""House-keeping: the end and the removal of transactions, locks and records that are no longer needed."""
