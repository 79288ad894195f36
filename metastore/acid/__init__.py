"""Hive's ACID directory layout: names, snapshots, buckets; pure."""
