"""A Hive-compatible transaction metastore on PostgreSQL."""

__version__ = "0.2.0"
