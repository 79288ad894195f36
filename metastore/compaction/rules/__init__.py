"""The decisions of compaction.

``requests``: states, duplicates, retries, retention; ``due``: when and which kind; ``cleaning``: what may be removed.
"""
