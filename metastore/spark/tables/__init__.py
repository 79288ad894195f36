"""What is known of a table: its kind, columns, keys and storage."""
