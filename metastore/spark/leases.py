"""Read transactions that live as long as the DataFrames that were read in them.

Rule: while a frame of a snapshot, or one derived from it, can still be run, its transaction stays open, so that the
Cleaner leaves its files. A frame carries its lease in a private copy of its SparkSession object, which every frame
derived from it shares. Leases that are alive at the same time form a group and end together: a join keeps only its
left side's session.
"""

import copy
import gc
import threading
import weakref
from collections.abc import Callable, Collection
from typing import TypeAlias

from pyspark.sql import DataFrame

Locked: TypeAlias = tuple[str, str]
"""Database and table."""


class _Group:
    """The transactions of frames that were alive together, and what they have locked."""

    def __init__(self) -> None:
        self.endings: list[Callable[[], None]] = []
        self.locked: set[Locked] = set()


class ReadLeases:
    """All read transactions of a session."""

    def __init__(self) -> None:
        self._group: weakref.ref[_Group] | None = None
        self._open: dict[weakref.finalize[[list[Callable[[], None]], list[threading.Thread]], _Group],
                         set[Locked]] = {}
        self._ending: list[threading.Thread] = []

    def protect(self, frame: DataFrame, end: Callable[[], None], locked: Collection[Locked] = ()) -> DataFrame:
        """The same frame; ``end`` is called, on a thread of its own, once nothing derived from it is left.

        ``locked``: the tables that its transaction has locked until then.
        """
        group = self._group() if self._group is not None else None
        if group is None:
            group = _Group()
            self._group = weakref.ref(group)
            self._open = {one: tables for one, tables in self._open.items() if one.alive}
            self._open[weakref.finalize(group, _end_in_background, group.endings, self._ending)] = group.locked
        group.endings.append(end)
        group.locked.update(locked)
        session = copy.copy(frame.sparkSession)
        session._acid_lease = group  # noqa: SLF001 - our own attribute on our own copy
        return DataFrame(frame._jdf, session)  # noqa: SLF001 - the only way to give a frame another session object

    def keep_locked(self, table: Locked) -> bool:
        """Whether a frame that can still be run has locked the table."""
        if any(table in locked for one, locked in self._open.items() if one.alive):
            gc.collect()  # frames that nobody has any more may still be in a cycle
        return any(table in locked for one, locked in self._open.items() if one.alive)

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
