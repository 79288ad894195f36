"""Deadlocks: requests that wait for each other in a circle, so that none of them would ever be granted.

Rules: requests of one transaction are one party, because it keeps all its locks until it ends; a request without a
transaction is a party of its own. A party waits while any of its requests waits. Only a new request can close a circle,
so each requester looks for a circle through itself. Of the transactions in the circle that made more than one request
the youngest dies; a party that made a single request, or has no transaction, never dies.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from metastore.locks.rules import Lock, LockQueue, LockState

Party: TypeAlias = int


class Wait(NamedTuple):
    """One lock that a party wants, and a lock of the next party that blocks it."""

    wanted: Lock
    blocker: Lock


class Deadlock(NamedTuple):
    """A circle of waits, and its victim."""

    waits: tuple[Wait, ...]
    victim: int
    victim_lock_ids: tuple[int, ...]

    @property
    def message(self) -> str:
        """The whole circle in words, the victim first."""
        start = next(place for place, wait in enumerate(self.waits) if wait.wanted.txn_id == self.victim)
        circle = "; ".join(
            f"{_who(wanted)} wants {_what(wanted)} and waits for {_what(blocker)} of {_who(blocker)}"
            for wanted, blocker in (*self.waits[start:], *self.waits[:start])
        )
        return f"Transaction txnid:{self.victim} was aborted to end a deadlock, as the youngest of it: {circle}"


def party(lock: Lock) -> Party:
    """Return the party of a lock: a transaction, or a request without a transaction (negative)."""
    return lock.txn_id or -lock.ext_id


def find(txn_id: int, locks: Iterable[Lock]) -> Deadlock | None:
    """Return the shortest circle through a transaction, None if there is none.

    ``locks``: at least every lock of every party that waits.
    """
    by_party: dict[Party, list[Lock]] = {}
    for lock in sorted(locks):  # Sorting gives the same circle from every party.
        by_party.setdefault(party(lock), []).append(lock)
    queue = LockQueue(lock for party_locks in by_party.values() for lock in party_locks)
    reached_by: dict[Party, Wait] = {}
    frontier: list[Party] = [txn_id]
    while frontier and txn_id not in reached_by:
        following: list[Party] = []
        for waiting in frontier:
            for wanted in by_party.get(waiting, ()):
                for blocker in queue.blockers(wanted) if wanted.state is LockState.WAITING else ():
                    if party(blocker) not in reached_by:
                        reached_by[party(blocker)] = Wait(wanted, blocker)
                        following.append(party(blocker))
        frontier = following
    if txn_id not in reached_by:
        return None
    waits = [reached_by[txn_id]]
    while party(waits[-1].wanted) != txn_id:
        waits.append(reached_by[party(waits[-1].wanted)])
    requests = {
        member: sorted({lock.ext_id for lock in by_party[member]})
        for member in map(party, (wait.wanted for wait in waits))
    }
    victim = max(member for member, ext_ids in requests.items() if len(ext_ids) > 1)
    return Deadlock(tuple(reversed(waits)), victim, tuple(requests[victim]))


def _who(lock: Lock) -> str:
    name = f"txnid:{lock.txn_id}" if lock.txn_id else f"lockid:{lock.ext_id} without a transaction"
    return f"{name} ({lock.user or 'unknown'}@{lock.host or 'unknown'})"


def _what(lock: Lock) -> str:
    return f"{lock.type.upper()} on {lock.object} (lockid:{lock.ext_id}.{lock.int_id})"
