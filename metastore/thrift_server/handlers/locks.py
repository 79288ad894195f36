"""The lock calls: decode, ask the service, encode; and hold back the answer that a lock is still waiting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

from metastore.errors import InvalidRequestError, MetastoreError
from metastore.housekeeping.service import PurgeService
from metastore.ids import database_name
from metastore.locks.rules import Lock, LockObject, LockRequest, LockState, LockType, Operation, WantedLock
from metastore.locks.service import LockFilter, LockResult, LockService
from metastore.partition_names import canonical
from metastore.telemetry.logs import get_logger
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import LATER, Call, Later, coalesced
from metastore.thrift_server.dispatch.workers import MOST
from metastore.thrift_server.responses.shared_lists import SharedLists
from metastore.thrift_server.responses.streamed import InPieces
from metastore.thrift_server.waiting.lock_connections import LockConnections
from metastore.thrift_server.waiting.lock_waits import Waiting

_STATES = {
    LockState.ACQUIRED: ttypes.LockState.ACQUIRED,
    LockState.WAITING: ttypes.LockState.WAITING,
    LockState.NOT_ACQUIRED: ttypes.LockState.NOT_ACQUIRED,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLIENT_IS_GONE = ttypes.LockResponse(lockid=0, state=ttypes.LockState.NOT_ACQUIRED)  # nobody gets to see it
_TYPES = {
    LockType.SHARED_READ: ttypes.LockType.SHARED_READ,
    LockType.SHARED_WRITE: ttypes.LockType.SHARED_WRITE,
    LockType.EXCL_WRITE: ttypes.LockType.EXCL_WRITE,
    LockType.EXCLUSIVE: ttypes.LockType.EXCLUSIVE,
}
_TYPES_READ = {number: kind for kind, number in _TYPES.items()}
_OPERATIONS_READ = {
    ttypes.DataOperationType.SELECT: Operation.SELECT,
    ttypes.DataOperationType.INSERT: Operation.INSERT,
    ttypes.DataOperationType.UPDATE: Operation.UPDATE,
    ttypes.DataOperationType.DELETE: Operation.DELETE,
    ttypes.DataOperationType.UNSET: Operation.UNSET,
    ttypes.DataOperationType.NO_TXN: Operation.NO_TXN,
    None: Operation.UNSET,
}

Answer: TypeAlias = ttypes.LockResponse | Exception

_log = get_logger(__name__)


class LockHandlers:
    """lock, check_lock, unlock, show_locks."""

    def __init__(
        self,
        locks: LockService,
        waiting: Waiting[Call] | None = None,
        holders: LockConnections | None = None,
        purges: PurgeService | None = None,
    ) -> None:
        """``locks``: does the work. ``waiting``: where calls wait; without it check_lock answers at once.

        ``holders``: where it is noted who has locks over which connection. ``purges``: ends owners that are in the way
        and has expired; without it only the house-keeper does.
        """
        self.locks = locks
        self.waiting = waiting
        self.holders = holders
        self.purges = purges
        self._lists = SharedLists(ttypes.ShowLocksResponseElement)

    @coalesced("lock")
    def lock(self, calls: list[Call]) -> list[Answer]:
        """Queue a request; the answer never waits for the lock.

        A request whose client is gone already is not queued; a request whose answer does not arrive comes here again
        and is withdrawn, unless the client would be recognised when it asks again.
        """
        self._withdraw([call for call in calls if call.lost])
        requests, refused = _requests([call for call in calls if not call.lost], self.locks.settings.max_components)
        answers = refused | self._lock(requests)
        return [_answer(call, answers.get(call)) for call in calls]

    @coalesced("check_lock")
    def check_lock(self, calls: list[Call]) -> list[Answer | Later]:
        """Whether the request is granted by now. While it is not, the call may be parked until there is news."""
        heard = self.waiting.heard if self.waiting is not None else 0
        answers = self._check_until_nobody_expires([call for call in calls if not call.connection.closed])
        parked = self._park(answers, heard)
        return [LATER if call in parked else _answer(call, answers.get(call)) for call in calls]

    @coalesced("unlock")
    def unlock(self, calls: list[Call]) -> list[Exception | None]:
        """Give a request up. Calls that are parked behind it are answered where nothing else is in their way."""
        lock_ids = [_lock_id(call) for call in calls]
        self._gave(lock_ids)
        parked = self.waiting.take(lock_ids, MOST) if self.waiting is not None else []
        return self._hand_over(lock_ids, parked) if parked else list(self.locks.unlock(lock_ids))

    def show_locks(self, _call: Call, rqst: ttypes.ShowLocksRequest) -> InPieces:
        """Locks that equal every filter that is set; those who ask for the same at the same time share a reading."""
        wanted = LockFilter(
            db=database_name(rqst.dbname) if rqst.dbname else None,
            table=rqst.tablename.lower() if rqst.tablename else None,
            partition=canonical(rqst.partname) if rqst.partname else None,
            txn_id=rqst.txnid,
        )
        return self._lists.answer(
            wanted, lambda: (ttypes.ShowLocksResponse, self.locks.show_locks(wanted, _STATES, _TYPES))
        )

    def _hand_over(self, lock_ids: list[int], parked: list[Call]) -> list[Exception | None]:
        granted: Mapping[int, LockResult] = {}
        try:
            answers, granted = self.locks.hand_over(lock_ids, {call.args[0].lockid for call in parked})
            self._looked(parked)
        finally:  # whatever becomes of the release, nobody stays parked
            for call in parked:
                if (answer := granted.get(call.args[0].lockid)) is not None:
                    call.answer(_answer(call, answer))
                else:
                    call.again()
        return list(answers)

    def _withdraw(self, lost: list[Call]) -> None:
        """Take back what was queued for calls whose answer did not arrive."""
        queued = {call.effect for call in lost if call.effect is not None}
        if queued:
            self.locks.withdraw(queued)

    def _lock(self, requests: Mapping[Call, LockRequest]) -> dict[Call, LockResult | MetastoreError]:
        answers = dict(zip(requests, self.locks.lock(list(requests.values())), strict=True)) if requests else {}
        for call, answer in answers.items():
            if isinstance(answer, LockResult) and not requests[call].is_recognisable:
                call.effect = answer.lock_id
            if isinstance(answer, LockResult) and not requests[call].txn_id and self.holders is not None:
                self.holders.took(answer.lock_id, call.connection, tied=not requests[call].connects_for_each_call)
        return answers

    def _gave(self, lock_ids: list[int]) -> None:
        if self.holders is not None:
            self.holders.gave(lock_ids)

    def _check_until_nobody_expires(self, calls: list[Call]) -> dict[Call, LockResult | MetastoreError]:
        """The answers, none of which waits for an owner that has expired."""
        answers = self._check(calls)
        while self._end_expired(answers):
            answers |= self._check([call for call, answer in answers.items() if _waits_for(answer)])
        return answers

    def _check(self, calls: list[Call]) -> dict[Call, LockResult | MetastoreError]:
        answers = self.locks.check_lock([call.args[0].lockid for call in calls]) if calls else []
        self._looked(calls)
        return dict(zip(calls, answers, strict=True))

    def _looked(self, calls: list[Call]) -> None:
        looks = {call.args[0].lockid: call.connection for call in calls}
        if self.holders is not None:
            for lock_id, connection in looks.items():  # the looks of a batch at a lock count once
                self.holders.looked(lock_id, connection)

    def _end_expired(self, answers: Mapping[Call, LockResult | MetastoreError]) -> bool:
        """End the owners in the way that have expired; whether there were any, so that another look is worth it."""
        ahead = {lock for answer in answers.values() if (lock := _waits_for(answer)) is not None}
        if not ahead or self.purges is None:
            return False
        try:
            return self.purges.expire_ahead(ahead) > 0
        except MetastoreError as error:  # the answers are true all the same, and the house-keeper comes
            _log.warning("expiry_not_looked_for", reason=str(error))
            return False

    def _park(self, answers: Mapping[Call, LockResult | MetastoreError], heard: int) -> set[Call]:
        """Let calls wait for the lock in their way; those that do. ``heard``: before the answers."""
        parked: set[Call] = set()
        unwatched: dict[Call, Lock] = {}
        if self.waiting is None:
            return parked
        for call, answer in answers.items():
            blocker = _waits_for(answer)
            if blocker is not None and call.patient and call.expected:
                call.park(partial(self._hurry, call))
                if self.waiting.add(call, blocker.ext_id, call.started, heard):
                    parked.add(call)
                    if isinstance(answer, LockResult) and not answer.is_watched:
                        unwatched[call] = blocker
        if unwatched:
            self._watch(self.waiting, unwatched)
        for call in parked:
            if call.connection.closed:  # perhaps since before anybody could tell us
                self._hurry(call)
        return parked

    def _watch(self, waiting: Waiting[Call], unwatched: Mapping[Call, Lock]) -> None:
        """Let us hear when these locks go. Those that are gone already are as if heard."""
        there: set[int] = set()
        try:
            there = self.locks.watch(unwatched.values())
        except Exception as error:  # noqa: BLE001 - whatever happened: what is parked must come to an end
            _log.warning("locks_not_watched", reason=str(error))
            for call in unwatched:
                call.patient = False
        waiting.released({blocker.ext_id for blocker in unwatched.values()} - there)

    def _hurry(self, call: Call) -> None:
        """Answer a parked call now."""
        call.patient = False
        if self.waiting is not None and self.waiting.remove(call):
            call.again()


def overdue(call: Call) -> None:
    """The patience of a parked call is at its end: look once more and answer."""
    call.patient = False
    call.again()


def _waits_for(answer: LockResult | MetastoreError) -> Lock | None:
    return answer.waits_for if isinstance(answer, LockResult) else None


def _requests(calls: list[Call], most: int) -> tuple[dict[Call, LockRequest], dict[Call, LockResult | MetastoreError]]:
    """What each client asks for that is still there, and what is wrong with it where something is."""
    read = {call: _request(call.args[0], most) for call in calls if not call.connection.closed}
    return (
        {call: request for call, request in read.items() if isinstance(request, LockRequest)},
        {call: error for call, error in read.items() if isinstance(error, InvalidRequestError)},
    )


def _request(sent: ttypes.LockRequest, most: int) -> LockRequest | InvalidRequestError:
    """A request of at most so many components, or what is wrong with it."""
    if len(sent.component or ()) > most:
        return InvalidRequestError(
            f"A lock request has at most {most} components (metastore.lock.max.components), this one has "
            f"{len(sent.component)}: lock the table instead of its partitions, in Hive by hive.locks.max.partitions."
        )
    try:
        return LockRequest(
            components=tuple(_component(component) for component in sent.component or ()),
            txn_id=sent.txnid or 0,
            user=_text(sent.user),
            host=_text(sent.hostname),
            agent_info=_text(sent.agentInfo) or "Unknown",
            zero_wait_read=bool(sent.zeroWaitReadEnabled),
            exclusive_ctas=bool(sent.exclusiveCTAS),
        )
    except InvalidRequestError as error:
        return error


def _component(sent: ttypes.LockComponent) -> WantedLock:
    kind = _TYPES_READ.get(sent.type)
    operation = _OPERATIONS_READ.get(sent.operationType)
    if kind is None or operation is None or not sent.dbname:
        raise InvalidRequestError(f"A lock component needs a known type, operation and a database name: {sent}")
    # The level that clients send is ignored, as Hive does: what is named is what is locked.
    table = _text(sent.tablename).lower()
    partition = canonical(_text(sent.partitionname)) if table else ""
    return WantedLock(
        type=kind,
        object=LockObject(*database_name(_text(sent.dbname)), table, partition),
        operation=operation,
        is_transactional=bool(sent.isTransactional),
        is_dynamic_partition_write=bool(sent.isDynamicPartitionWrite),
    )


def _text(sent: str | None) -> str:
    if sent and "\0" in sent:
        raise InvalidRequestError("A lock request contains a text with a NUL character, which cannot be stored.")
    return sent or ""


def _lock_id(call: Call) -> int:
    lock_id: int = call.args[0].lockid
    call.log(lock_id=lock_id)
    return lock_id


def _answer(call: Call, answer: LockResult | Exception | None) -> Answer:
    """``answer``: None where the client is gone."""
    if answer is None:
        return _CLIENT_IS_GONE
    if isinstance(answer, Exception):
        return answer
    call.log(lock_id=answer.lock_id, lock_state=answer.state.value)
    return ttypes.LockResponse(lockid=answer.lock_id, state=_STATES[answer.state], errorMessage=answer.message)
