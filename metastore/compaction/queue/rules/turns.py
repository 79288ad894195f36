"""Whose turn it is: waiting compactions by what they save for what they cost, and by how long they have waited.

Rule: what a compaction saves counts as time that it has waited already. So the order of two requests never changes
while they wait, and nothing starves: nobody is overtaken by who comes more than `BY_PEOPLE` later.
A table that is written without end gets its share of the Workers, and more only while nobody else waits. A pool has no
more than its limit, whoever waits.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from math import log2
from typing import NamedTuple, TypeVar

DOUBLING = timedelta(minutes=15)
"""Twice as much saved for each byte is worth so much waiting."""
LONGEST = timedelta(hours=6)
"""No saving is worth more."""
BY_PEOPLE = 2 * LONGEST
"""A person who asks goes before all that nobody asked for, unless that has waited for very long."""
OPENING = 4 * 1024 * 1024
"""The bytes that a reader could read in the time in which it lists and opens one directory."""
_LOWEST = 2.0 ** -(LONGEST / DOUBLING / 2)
Key = TypeVar("Key")


class Benefit(NamedTuple):
    """What a compaction is good for. ``directories``: that readers need not open any more.

    ``opens``: snapshots of the table that readers take in an hour.
    """

    directories: int
    rewritten: int
    opens: float = 0

    @property
    def per_byte(self) -> float:
        """Bytes that readers save for each byte that is rewritten; of a table that nobody reads as if one did."""
        return self.directories * OPENING * (1 + self.opens) / (self.rewritten + OPENING)


def is_by_person(initiator_id: str | None) -> bool:
    """Return True if somebody asked for it: our clients name no initiator, Hive's name "manual" as its thread."""
    return not initiator_id or initiator_id.endswith("-manual")


def head_start(benefit: Benefit | None) -> timedelta:
    """Return the waiting that a request is given beforehand; None: nobody has measured anything."""
    if benefit is None or benefit.per_byte <= _LOWEST:
        return timedelta(0)
    return min(LONGEST, DOUBLING * log2(benefit.per_byte / _LOWEST))


def full_pools(working: Mapping[str, int], limits: Mapping[str, int]) -> list[str]:
    """Return the pools of which no more may be worked on. ``working``: how many are, of the pools with any."""
    return [pool for pool, limit in limits.items() if working.get(pool, 0) >= limit]


def over_share(working: Iterable[Key], share: float) -> list[Key]:
    """Return who would have more than its share of the Workers with one more; each working compaction names who has it.

    One Worker is everybody's share at least. ``working``: those of one pool.
    """
    counts: dict[Key, int] = {}
    total = 0
    for key in working:
        counts[key] = counts.get(key, 0) + 1
        total += 1
    most = max(1.0, share * (total + 1))
    return [key for key, count in counts.items() if count + 1 > most]
