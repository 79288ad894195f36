"""How many Workers a pool needs: what arrives and what waits, by how long one compaction takes.

Rule: only what was measured counts. Where no compaction has ended yet, the Workers of now are enough, and one for what
waits. Source: ours; Hive has no such number.
"""

from datetime import timedelta
from math import ceil
from typing import NamedTuple

CLEARED_WITHIN = timedelta(hours=1)
"""In what time the wanted Workers work off a backlog."""


class PoolLoad(NamedTuple):
    """Requests of a pool within a window. ``each_s``: how long one took, None where none has ended."""

    pool: str
    waiting: int
    working: int
    arrived: int
    each_s: float | None


def workers_wanted(load: PoolLoad, window: timedelta) -> int:
    """Return how many Workers do what arrives, and what waits within `CLEARED_WITHIN`."""
    if load.each_s is None:
        return max(load.working, min(load.waiting, 1))
    each = timedelta(seconds=load.each_s)
    enough = ceil(round(load.arrived * (each / window) + load.waiting * (each / CLEARED_WITHIN), 6))
    return max(enough, min(load.waiting + load.working, 1))
