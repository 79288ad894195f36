"""Taking over the transactions of Hive's own metastore."""
