"""commit_txn: the first committer wins."""
