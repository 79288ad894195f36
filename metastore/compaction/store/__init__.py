"""What compaction remembers, and what it reads of others.

``queue``: requests and history; ``components``: what transactions left; ``entities``: what the catalog says of a table.
"""
