"""Scaling of pools: the number of Workers, from arrivals, waiting requests and the duration of a compaction.

Rule: only measured figures count. If no compaction has ended yet, the present Workers are enough, and one for waiting
requests. Source: ours; Hive has no such number.
"""

from datetime import timedelta
from math import ceil
from typing import NamedTuple

CLEARED_WITHIN = timedelta(hours=1)
"""The time in which the wanted Workers clear a backlog."""


class PoolLoad(NamedTuple):
    """The requests of a pool within a window. ``each_s``: the duration of one, None if none has ended."""

    pool: str
    waiting: int
    working: int
    arrived: int
    each_s: float | None


def workers_wanted(load: PoolLoad, window: timedelta) -> int:
    """Return how many Workers handle arrivals, and clear waiting requests within `CLEARED_WITHIN`."""
    if load.each_s is None:
        return max(load.working, min(load.waiting, 1))
    each = timedelta(seconds=load.each_s)
    enough = ceil(round(load.arrived * (each / window) + load.waiting * (each / CLEARED_WITHIN), 6))
    return max(enough, min(load.waiting + load.working, 1))
