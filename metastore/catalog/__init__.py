"""The catalog: databases, tables, partitions, functions, statistics."""
