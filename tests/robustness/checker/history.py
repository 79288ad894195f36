"""What a run did, as plain values: every call with its interval, every read, every element written, and how it ended.

Elements are appended to keys (a partition of a table, or a table without partitions). An element stands in the file of a
write id, so whether a reader sees it is decided by the snapshot alone: list-append as Hive's ACID tables do it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import Any, NamedTuple


class Answer(StrEnum):
    """What the caller knows of a call."""

    OK = "ok"
    FAIL = "fail"           # certainly without effect
    UNKNOWN = "unknown"     # the answer was lost, or says that it does not know


class Call(NamedTuple):
    """One attempt of one call. ``facts``: what was asked and answered, by method. ``end`` is inf if there was none."""

    method: str
    start: float
    end: float
    answer: Answer
    facts: dict[str, Any]


class View(NamedTuple):
    """The snapshot that a transaction reads by."""

    txn: int
    start: float
    end: float
    mark: int
    exceptions: frozenset[int]

    def sees(self, txn: int) -> bool:
        return txn == self.txn or (txn <= self.mark and txn not in self.exceptions)


class Read(NamedTuple):
    """Elements that a transaction found in a key, in the order of their write ids."""

    txn: int
    key: str
    elements: tuple[str, ...]


class Append(NamedTuple):
    """``changes``: declared as an update, so that the first committer wins; an insert conflicts with nothing."""

    txn: int
    key: str
    element: str
    write_id: int
    changes: bool

    @property
    def table(self) -> str:
        return self.key.split("/")[0]


class Base(NamedTuple):
    """What a compaction has published: ``txn`` is its own, ``at`` the moment in which the name was there."""

    key: str
    write_id: int
    txn: int
    at: float


class Unreadable(NamedTuple):
    """A transaction that was open found that what it must read has been cleaned away."""

    txn: int
    key: str
    error: str


class Anomaly(NamedTuple):
    """Something that must not happen, and the evidence."""

    kind: str
    text: str


@dataclass
class History:
    """``states``: what the tables say of each transaction in the end; none: it is unknown there."""

    timeout: float = inf
    calls: list[Call] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    appends: list[Append] = field(default_factory=list)
    bases: list[Base] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    crashes: list[float] = field(default_factory=list)
    """When PostgreSQL was killed."""

    def called(self, *methods: str, answer: Answer | None = None) -> Iterable[Call]:
        """Return the attempts of these methods."""
        return (call for call in self.calls if call.method in methods and answer in {None, call.answer})

    @cached_property
    def committed(self) -> frozenset[int]:
        """Transactions that the tables call committed."""
        return frozenset(txn for txn, state in self.states.items() if state == "committed")

    @cached_property
    def opened(self) -> dict[int, Call]:
        """By transaction: the call that opened it, as far as its answer arrived."""
        return {txn: call for call in self.called("open_txns", answer=Answer.OK) for txn in call.facts["ids"]}

    @cached_property
    def writer(self) -> dict[str, Append]:
        """By element: how it was written."""
        return {append.element: append for append in self.appends}

    @cached_property
    def lost(self) -> frozenset[int]:
        """Transactions that somebody else has ended: who asked for an abort or a commit may have said that nothing more comes."""
        asked: set[int] = {call.facts["txn"] for call in self.called("commit_txn", "abort_txn")}
        for call in self.called("abort_txns"):
            asked.update(call.facts["txns"])
        return frozenset(self.opened.keys() - asked - self.committed)

    @cached_property
    def commits(self) -> dict[int, list[Call]]:
        """By transaction: the attempts to commit it."""
        found: dict[int, list[Call]] = {}
        for call in self.called("commit_txn"):
            found.setdefault(call.facts["txn"], []).append(call)
        return found
