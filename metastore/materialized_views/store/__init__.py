"""What is remembered of materialized views."""
