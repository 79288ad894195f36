"""Parked lock calls, which wait while a lock blocks them, and are answered when its release hands over.

Rule: whatever the outcome of a check, a release or a mark, no call stays parked without an event that ends it: the end
of its blocker, the end of its patience, or the end of its client.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from metastore.errors import MetastoreError
from metastore.housekeeping.service import PurgeService
from metastore.locks.rules import Lock
from metastore.locks.service import LockResult, LockService
from metastore.telemetry.logs import get_logger
from metastore.thrift_server.dispatch.call import LATER, Call, Later
from metastore.thrift_server.dispatch.workers import MOST
from metastore.thrift_server.waiting.lock_connections import LockConnections
from metastore.thrift_server.waiting.lock_waits import Waiting

State: TypeAlias = LockResult | MetastoreError
_log = get_logger(__name__)


class ParkedCalls:
    """The calls of check_lock, between their first check of a lock and their answer."""

    def __init__(
        self,
        locks: LockService,
        waiting: Waiting[Call] | None,
        holders: LockConnections | None,
        purges: PurgeService | None,
    ) -> None:
        """Prepare the calls. ``waiting``: keeps the waiters; without it each call is answered at once.

        ``holders``: records the connection of each lock. ``purges``: ends blockers that have expired; without it only
        the house-keeper does.
        """
        self._locks, self._waiting, self._holders, self._purges = locks, waiting, holders, purges

    def check(self, calls: Sequence[Call]) -> dict[Call, State | Later]:
        """Return whether each request is granted by now, `LATER` for calls that were parked."""
        heard = self._waiting.heard if self._waiting is not None else 0
        states = self._look(calls)
        while self._end_expired(states):
            states |= self._look([call for call, state in states.items() if _waits_for(state)])
        parked = self._park(self._waiting, states, heard) if self._waiting is not None else ()
        return states | dict.fromkeys(parked, LATER)

    def unlock(
        self, lock_ids: Sequence[int], answer: Callable[[Call, LockResult], object]
    ) -> list[MetastoreError | None]:
        """Release requests, and answer parked calls behind them that no other lock blocks."""
        if self._holders is not None:
            self._holders.gave(lock_ids)
        parked = self._waiting.take(lock_ids, MOST) if self._waiting is not None else []
        if not parked:
            return self._locks.unlock(lock_ids)
        granted: Mapping[int, LockResult] = {}
        try:
            answers, granted = self._locks.hand_over(lock_ids, {call.args[0].lockid for call in parked})
            self._note_looks(parked)
        finally:
            for call in parked:
                if (state := granted.get(call.args[0].lockid)) is not None:
                    call.answer(answer(call, state))
                else:
                    call.again()
        return answers

    def _look(self, calls: Sequence[Call]) -> dict[Call, State]:
        states = self._locks.check_lock([call.args[0].lockid for call in calls]) if calls else []
        self._note_looks(calls)
        return dict(zip(calls, states, strict=True))

    def _note_looks(self, calls: Sequence[Call]) -> None:
        looks = {call.args[0].lockid: call.connection for call in calls}
        if self._holders is not None:
            for lock_id, connection in looks.items():  # Several checks of one lock in a batch count once.
                self._holders.looked(lock_id, connection)

    def _end_expired(self, states: Mapping[Call, State]) -> bool:
        """End expired owners of blockers. Return True if there were any, so that another check is worthwhile."""
        ahead = {lock for state in states.values() if (lock := _waits_for(state)) is not None}
        if not ahead or self._purges is None:
            return False
        try:
            return self._purges.expire_ahead(ahead) > 0
        except MetastoreError as error:  # The answers are still correct, and the house-keeper ends the blockers later.
            _log.warning("expiry_not_looked_for", reason=str(error))
            return False

    def _park(self, waiting: Waiting[Call], states: Mapping[Call, State], heard: int) -> set[Call]:
        """Park calls that wait for a blocker, and return them. ``heard``: the count of releases before the check."""
        parked: set[Call] = set()
        unwatched: dict[Call, Lock] = {}
        for call, state in states.items():
            blocker = _waits_for(state)
            if blocker is not None and call.patient and call.expected:
                call.park(partial(self._hurry, waiting, call))
                if waiting.add(call, blocker.ext_id, call.started, heard):
                    parked.add(call)
                    if isinstance(state, LockResult) and not state.is_watched:
                        unwatched[call] = blocker
        if unwatched:
            self._watch(waiting, unwatched)
        for call in parked:
            if call.connection.closed:  # The connection may have closed before we could be notified.
                self._hurry(waiting, call)
        return parked

    def _watch(self, waiting: Waiting[Call], unwatched: Mapping[Call, Lock]) -> None:
        """Subscribe this process to the release of these locks. Locks that are gone count as released."""
        there: set[int] = set()
        try:
            there = self._locks.watch(unwatched.values())
        except Exception as error:  # noqa: BLE001 - whatever happened: what is parked must come to an end
            _log.warning("locks_not_watched", reason=str(error))
            for call in unwatched:
                call.patient = False
        waiting.released({blocker.ext_id for blocker in unwatched.values()} - there)

    @staticmethod
    def _hurry(waiting: Waiting[Call], call: Call) -> None:
        """Answer a parked call now."""
        call.patient = False
        if waiting.remove(call):
            call.again()


def end_patience(call: Call) -> None:
    """Check once more for a parked call, and answer it: its patience is at an end."""
    call.patient = False
    call.again()


def _waits_for(state: State) -> Lock | None:
    return state.waits_for if isinstance(state, LockResult) else None
