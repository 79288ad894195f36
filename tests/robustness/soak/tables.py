"""What the soak's tables hold, and the settings that everybody goes by."""

ACCOUNTS, EACH = 60, 1000
"""How many accounts there are, and how much money each has in the beginning."""
WRITERS = ("w0", "w1")
"""Who has rows of its own in ``soak.facts`` and ``soak.flat``: w = 0 and w = 1."""
COMPACTED = (("facts", "w=0"), ("facts", "w=1"), ("flat", None), ("accounts", None))
"""Tables and partitions that change most: what is read slowly is compacted meanwhile."""
TXN_TIMEOUT_S, LEASE_S = 20.0, 10.0
"""After how long without a sign of life a transaction, and a compaction's claim, end."""
