"""Turns of waiting compactions, by their benefit for their cost, and by their waiting time.

Rule: the benefit of a compaction counts as time that it has waited already. So the order of two requests never changes
while they wait, and none starves: no request is overtaken by one that comes more than `BY_PEOPLE` later. A table that
is written without end gets its share of the Workers, and more only while no other request waits. A pool never exceeds
its limit.
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
"""The lead of a person's request over all others, unless they have waited for very long."""
OPENING = 4 * 1024 * 1024
"""The bytes that a reader could read in the time in which it lists and opens one directory."""
_LOWEST = 2.0 ** -(LONGEST / DOUBLING / 2)
Key = TypeVar("Key")


class Benefit(NamedTuple):
    """The benefit of a compaction. ``directories``: those that readers need not open any more.

    ``opens``: snapshots of the table that readers take in an hour.
    """

    directories: int
    rewritten: int
    opens: float = 0

    @property
    def per_byte(self) -> float:
        """The bytes that readers save for each rewritten byte; a table without readers counts as if it had one."""
        return self.directories * OPENING * (1 + self.opens) / (self.rewritten + OPENING)


def is_by_person(initiator_id: str | None) -> bool:
    """Return True if a person asked for it: our clients name no initiator, Hive's name "manual" as its thread."""
    return not initiator_id or initiator_id.endswith("-manual")


def head_start(benefit: Benefit | None) -> timedelta:
    """Return the waiting time credited to a request; None: no benefit was measured."""
    if benefit is None or benefit.per_byte <= _LOWEST:
        return timedelta(0)
    return min(LONGEST, DOUBLING * log2(benefit.per_byte / _LOWEST))


def full_pools(working: Mapping[str, int], limits: Mapping[str, int]) -> list[str]:
    """Return the pools that are at their limits. ``working``: the number of working compactions by pool."""
    return [pool for pool, limit in limits.items() if working.get(pool, 0) >= limit]


def over_share(working: Iterable[Key], share: float) -> list[Key]:
    """Return the keys that may not get one more Worker, because it would exceed their share.

    Every share is at least one Worker. ``working``: the key of each working compaction of one pool.
    """
    counts: dict[Key, int] = {}
    total = 0
    for key in working:
        counts[key] = counts.get(key, 0) + 1
        total += 1
    most = max(1.0, share * (total + 1))
    return [key for key, count in counts.items() if count + 1 > most]
