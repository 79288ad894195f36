"""A Hive-compatible transaction metastore on PostgreSQL."""
