"""The way to PostgreSQL, its schema, and the embedded PostgreSQL."""
