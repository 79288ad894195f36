"""Benchmarks of the metastore, beside its peers."""
