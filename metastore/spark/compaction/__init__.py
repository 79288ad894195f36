"""The Spark job that compacts an ACID directory; ``plain_rows`` compacts insert-only tables."""
