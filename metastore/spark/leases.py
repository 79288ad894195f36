"""Read transactions that live as long as the DataFrames that were read in them.

Rule: while a frame of a snapshot, or one derived from it, can still be run, its transaction stays open, so that the
Cleaner leaves its files. A frame carries its lease in a private copy of its SparkSession object, which every frame
derived from it shares. Leases that are alive at the same time form a group and end together: a join keeps only its
left side's session.
"""

import copy
import threading
import weakref
from collections.abc import Callable

from pyspark.sql import DataFrame


class _Group:
    """The transactions of frames that were alive together."""

    def __init__(self) -> None:
        self.endings: list[Callable[[], None]] = []


class ReadLeases:
    """All read transactions of a session."""

    def __init__(self) -> None:
        self._group: weakref.ref[_Group] | None = None
        self._open: set[weakref.finalize[[list[Callable[[], None]], list[threading.Thread]], _Group]] = set()
        self._ending: list[threading.Thread] = []

    def protect(self, frame: DataFrame, end: Callable[[], None]) -> DataFrame:
        """The same frame; ``end`` is called, on a thread of its own, once nothing derived from it is left."""
        group = self._group() if self._group is not None else None
        if group is None:
            group = _Group()
            self._group = weakref.ref(group)
            self._open = {one for one in self._open if one.alive}
            self._open.add(weakref.finalize(group, _end_in_background, group.endings, self._ending))
        group.endings.append(end)
        session = copy.copy(frame.sparkSession)
        session._acid_lease = group  # noqa: SLF001 - our own attribute on our own copy
        return DataFrame(frame._jdf, session)  # noqa: SLF001 - the only way to give a frame another session object

    def close(self) -> None:
        """End every transaction now; those that are ending meanwhile are waited for, since they use the connection."""
        for ending in self._open:
            if (detached := ending.detach()) is not None:
                _end_all(detached[2][0])
        self._open.clear()
        self._group = None
        while self._ending:
            self._ending.pop().join()


def _end_in_background(endings: list[Callable[[], None]], ending: list[threading.Thread]) -> None:
    """The garbage collector must not wait for the network."""
    thread = threading.Thread(target=_end_all, args=(endings,), name="acid-lease-end", daemon=True)
    ending[:] = [one for one in ending if one.is_alive()]
    thread.start()
    ending.append(thread)


def _end_all(endings: list[Callable[[], None]]) -> None:
    while endings:
        endings.pop()()
