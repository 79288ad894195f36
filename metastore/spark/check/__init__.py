"""Checks that read a table's files. They need no Spark session."""
