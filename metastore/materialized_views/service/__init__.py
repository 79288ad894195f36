"""The calls about materialized views."""
