"""The catalog's RPCs: one PostgreSQL transaction each, directories created before it and removed after it."""
