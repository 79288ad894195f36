"""The access to PostgreSQL, its schema, and the embedded PostgreSQL."""
