"""No two holders at once: intervals in which a client may rely on its lock, against the compatibility matrix.

A client may rely on a lock from the answer that grants it until it asks to release it, or until one time-out has passed
since it *sent* the last call that kept the lock alive, whichever is first. A transaction's locks protect what it commits:
those of a transaction that is committed count until its commit was first asked for, those of others not at all.
"""

from collections.abc import Iterator
from itertools import combinations
from math import inf
from typing import NamedTuple

from tests.robustness.checker.history import Anomaly, Answer, Call, History

# LOCK-1, written down once more: which pairs of types may be held at the same time.
_TOGETHER = {("shared_read", "shared_read"), ("shared_read", "shared_write"), ("shared_read", "excl_write"),
             ("shared_write", "shared_write")}


class Hold(NamedTuple):
    """A lock that its owner relies on from ``start`` to ``end``."""

    lock_id: int
    owner: str
    kind: str
    place: tuple[str, str, str]
    start: float
    end: float

    def __str__(self) -> str:
        return (f"lock {self.lock_id} of {self.owner} ({self.kind.upper()} on {'.'.join(filter(None, self.place))}) "
                f"from {self.start:.3f} to {self.end:.3f}")


def held_by_two(history: History) -> Iterator[Anomaly]:
    """Pairs of holds that exclude each other and overlap in time."""
    by_table: dict[tuple[str, str], list[Hold]] = {}
    for hold in holds(history):
        by_table.setdefault(hold.place[:2], []).append(hold)
    for same in by_table.values():
        for one, other in combinations(sorted(same, key=lambda hold: hold.start), 2):
            if other.start < min(one.end, other.end) and one.owner != other.owner and _exclude(one, other):
                yield Anomaly("lock held by two", f"{one}; {other}")


def _exclude(one: Hold, other: Hold) -> bool:
    apart = one.place[2] and other.place[2] and one.place[2] != other.place[2]
    return not apart and not {(one.kind, other.kind), (other.kind, one.kind)} & _TOGETHER


def holds(history: History) -> Iterator[Hold]:
    """Every lock that was granted, as long as its owner could rely on it: two clients may be told the same id."""
    granted: dict[tuple[int, str], Call] = {}
    alive: dict[tuple[int, str], float] = {}
    for call in history.called("lock", "check_lock", "heartbeat", answer=Answer.OK):
        if call.facts.get("lock") and call.facts.get("state", "acquired") == "acquired":
            held = call.facts["lock"], call.facts["owner"]
            alive[held] = max(alive.get(held, 0), call.start)
            if call.method != "heartbeat" and call.end < granted.get(held, _NEVER).end:
                granted[held] = call
    released: dict[tuple[int, str], float] = {}
    for call in history.called("unlock"):
        held = call.facts["lock"], call.facts["owner"]
        released[held] = min(released.get(held, inf), call.start)
    for call in history.called("lock", answer=Answer.OK):
        held, txn = (call.facts["lock"], call.facts["owner"]), call.facts["txn"]
        if held in granted and (not txn or txn in history.committed):
            end = (min(one.start for one in history.commits[txn]) if txn
                   else min(released.get(held, inf), alive[held] + history.timeout))
            for kind, *place in call.facts["components"]:
                yield Hold(held[0], f"T{txn}" if txn else f"{held[1]} by lock {held[0]}", kind, tuple(place), granted[held].end, end)


_NEVER = Call("", inf, inf, Answer.UNKNOWN, {})
