"""Writes of rows into files: events, the writers of ACID and of plain files, and the names that files get."""
