"""Write ids: the numbers that distinguish the files of tables, and their visibility to readers."""
