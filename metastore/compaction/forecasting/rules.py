"""Whether a pool's Workers keep up with what is requested: arrival against service rate.

Rule: only what was measured counts. Who works now is who there is; where nothing was done yet, nothing is foretold.
"""

from datetime import timedelta
from math import ceil, floor
from typing import NamedTuple

CLEARED_WITHIN = timedelta(hours=1)
"""In what time a backlog is to be worked off by the Workers that are wanted."""
_HOUR_S = 3600.0


class PoolLoad(NamedTuple):
    """What happened in a pool within a window. ``each_s``: how long one took, None where none was done."""

    pool: str
    waiting: int
    working: int
    oldest: timedelta | None
    arrived: int
    done: int
    each_s: float | None


class Forecast(NamedTuple):
    """What comes of it. ``clears_in``: None is never, or not known; ``wanted``: Workers that would be enough."""

    load: PoolLoad
    arrivals_per_hour: float
    served_per_hour: float | None
    clears_in: timedelta | None
    wanted: int
    text: str


def forecast(load: PoolLoad, window: timedelta) -> Forecast:
    """When what waits will have been done, if things go on as in the window."""
    arrivals = load.arrived / (window.total_seconds() / _HOUR_S)
    wanted = workers_wanted(load, window)
    served = None if load.each_s is None else load.working * _HOUR_S / load.each_s
    if not load.waiting:
        return Forecast(load, arrivals, served, timedelta(0), wanted, "nothing waits")
    if load.each_s is None or served is None:
        text = f"not known: {load.waiting} wait, and none was done in the last {window}"
        return Forecast(load, arrivals, None, None, wanted, text)
    if not load.working:
        return Forecast(
            load, arrivals, served, None, wanted, f"never: no Worker is at work in the pool; {_workers(wanted)}"
        )
    if served > arrivals:
        clears_in = timedelta(hours=load.waiting / (served - arrivals))
        return Forecast(load, arrivals, served, clears_in, wanted, f"clears in {_length(clears_in)}")
    more = floor(arrivals * load.each_s / _HOUR_S) + 1 - load.working
    return Forecast(load, arrivals, served, None, wanted, f"never: {_workers(more, ' more')}")


def workers_wanted(load: PoolLoad, window: timedelta) -> int:
    """Workers that do what arrives, and what waits within `CLEARED_WITHIN`; for who adds and removes Workers."""
    if load.each_s is None:
        return max(load.working, min(load.waiting, 1))
    each = timedelta(seconds=load.each_s)
    enough = ceil(round(load.arrived * (each / window) + load.waiting * (each / CLEARED_WITHIN), 6))
    return max(enough, min(load.waiting + load.working, 1))


def _workers(number: int, more: str = "") -> str:
    return f"1{more} Worker is needed" if number == 1 else f"{number}{more} Workers are needed"


def _length(length: timedelta) -> str:
    minutes = ceil(length.total_seconds() / 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} m" if hours else f"{minutes} m"
