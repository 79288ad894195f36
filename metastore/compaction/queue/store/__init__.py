"""What compaction remembers, and what it reads of others.

``requests``: the queue and its history; ``components``: what transactions left; ``entities``: what the catalog says.
"""
