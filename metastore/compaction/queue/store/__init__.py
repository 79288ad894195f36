"""The rows of compaction, and its queries of other concepts' rows.

``requests``: the queue and its history; ``components``: leftovers of transactions; ``entities``: facts of the catalog.
"""
