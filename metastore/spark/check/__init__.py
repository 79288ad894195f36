"""Checks of a table's files, which it reads. Needs no Spark session."""
