"""A table's columns in Spark's types, and the columns of its rows' ids."""
