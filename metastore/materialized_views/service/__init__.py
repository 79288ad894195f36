"""The work of one call about materialized views."""
