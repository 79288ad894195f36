"""Materialized views: what they were made from, and their rebuilds."""
