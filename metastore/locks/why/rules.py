"""The walk of the wait graph, from the owners in question to those that wait for no other.

Rule: the unit of waiting is an owner: a transaction with all of its lock requests, or a request without a transaction.
An owner waits for another when any of its waiting locks waits for a lock of the other. The walk visits an owner once,
so a cycle ends it; every owner of a cycle is marked.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from metastore.locks.rules import NO_TXN, Lock, LockQueue, LockState


class Owner(NamedTuple):
    """A transaction, or a lock request that has none."""

    txn_id: int
    ext_id: int
    """0 where there is a transaction."""


class WalkStep(NamedTuple):
    """An owner of the walk.

    ``wanted``: its locks that wait; ``held``: its locks for which other owners of the walk wait, else those in
    question.
    """

    owner: Owner
    waits_for: list[Owner]
    wanted: list[Lock]
    held: list[Lock]
    in_cycle: bool

    @property
    def is_root(self) -> bool:
        """True if the owner waits for no other: it has to end before any owner behind it continues."""
        return not self.waits_for


def owner_of(lock: Lock) -> Owner:
    """Return the owner of a lock."""
    return Owner(lock.txn_id, 0 if lock.txn_id != NO_TXN else lock.ext_id)


def walk(locks: Iterable[Lock], callable_lockbool: Callable[[Lock], bool]) -> list[WalkStep]:
    """The owners of the locks in question, then those whom they wait for, then those whom these wait for, and so on.

    ``locks``: all that wait, and at least their possible blockers.
    """
    known = list(locks)
    queue = LockQueue(known)
    waiting: dict[Owner, list[Lock]] = {}
    for lock in known:
        if lock.state is LockState.WAITING:
            waiting.setdefault(owner_of(lock), []).append(lock)
    edges: dict[Owner, list[Owner]] = {}
    in_the_way: dict[Owner, dict[Lock, None]] = {}
    ahead = list(dict.fromkeys(owner_of(lock) for lock in known if callable_lockbool(lock)))
    for owner in ahead:  # The list grows while the loop walks it.
        blockers = [blocker for lock in waiting.get(owner, ()) for blocker in queue.blockers(lock)]
        for blocker in blockers:
            in_the_way.setdefault(owner_of(blocker), {})[blocker] = None
        edges[owner] = list(dict.fromkeys(owner_of(blocker) for blocker in blockers))
        ahead += [edge for edge in edges[owner] if edge not in edges and edge not in ahead]
    cyclic = {owner for owner in edges if owner in _reachable(edges, owner)}
    mine = {owner: [lock for lock in known if owner_of(lock) == owner and callable_lockbool(lock)] for owner in edges}
    return [
        WalkStep(
            owner,
            edges[owner],
            waiting.get(owner, []),
            list(in_the_way.get(owner, ())) or [lock for lock in mine[owner] if lock.state is LockState.ACQUIRED],
            owner in cyclic,
        )
        for owner in ahead
    ]


def _reachable(edges: dict[Owner, list[Owner]], start: Owner) -> set[Owner]:
    """Return every owner for which an owner waits, directly or behind others; itself only in a cycle."""
    reached: set[Owner] = set()
    ahead = list(edges[start])
    while ahead:
        owner = ahead.pop()
        if owner not in reached:
            reached.add(owner)
            ahead += edges[owner]
    return reached
