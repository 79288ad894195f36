"""What the soak's tables hold, and the settings that everybody goes by."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

ACCOUNTS, EACH = 60, 1000
"""How many accounts there are, and how much money each has in the beginning."""
WRITERS = ("w0", "w1")
"""Who has rows of its own in ``soak.facts`` and ``soak.flat``: w = 0 and w = 1."""
COMPACTED = (("facts", "w=0"), ("facts", "w=1"), ("flat", None), ("accounts", None))
"""Tables and partitions that change most: what is read slowly is compacted meanwhile."""
TXN_TIMEOUT_S, LEASE_S = 20.0, 10.0
"""After how long without a sign of life a transaction, and a compaction's claim, end."""


def wrong_accounts(balances: Sequence[int]) -> list[str]:
    """Whether money or an account was lost, or came up."""
    is_right = len(balances) == ACCOUNTS and sum(balances) == ACCOUNTS * EACH
    return [] if is_right else [f"accounts: {len(balances)} rows with {sum(balances)}, not {ACCOUNTS} with {ACCOUNTS * EACH}"]


def twice(table: str, rows: Iterable[Sequence[Any]]) -> list[str]:
    """Ids that a table has more than once: of accounts, and of a writer's rows."""
    seen = Counter(row[0] if table == "accounts" else (row[0], row[-1]) for row in rows)
    found = [key for key, count in seen.items() if count > 1]
    return [f"{table}: ids are there twice: {found[:3]} of {len(found)}"] if found else []
