"""The catalog's rows: every SQL statement of the concept."""
