"""The records of materialized views."""
