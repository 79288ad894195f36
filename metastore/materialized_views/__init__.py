"""Materialized views: their source tables, and their rebuilds."""
