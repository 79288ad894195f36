"""The Spark job that compacts one ACID directory; ``plain_rows`` does it for insert-only tables."""
