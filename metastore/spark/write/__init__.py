"""Rows into files: events, the writers of ACID and of plain files, and how files get their names."""
