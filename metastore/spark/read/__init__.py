"""From a snapshot to rows: which files hold them, one scan over those files, and what takes deleted rows out."""
