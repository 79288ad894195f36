"""The lock calls: decode, ask the service, encode. Calls that wait for a lock are in `waiting.parked_calls`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from metastore.errors import InvalidRequestError, MetastoreError
from metastore.housekeeping.service import PurgeService
from metastore.ids import database_name
from metastore.locks.rules import LockObject, LockRequest, LockState, LockType, Operation, WantedLock
from metastore.locks.service import LockFilter, LockResult, LockService
from metastore.partition_names import canonical
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call, Later, coalesced
from metastore.thrift_server.responses.shared_lists import SharedLists
from metastore.thrift_server.responses.streamed import InPieces
from metastore.thrift_server.waiting.lock_connections import LockConnections
from metastore.thrift_server.waiting.lock_waits import Waiting
from metastore.thrift_server.waiting.parked_calls import ParkedCalls

_STATES = {
    LockState.ACQUIRED: ttypes.LockState.ACQUIRED,
    LockState.WAITING: ttypes.LockState.WAITING,
    LockState.NOT_ACQUIRED: ttypes.LockState.NOT_ACQUIRED,
}
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


class LockHandlers:
    """lock, check_lock, unlock, show_locks."""

    def __init__(
        self,
        locks: LockService,
        waiting: Waiting[Call] | None = None,
        holders: LockConnections | None = None,
        purges: PurgeService | None = None,
    ) -> None:
        """``locks``: does the work. The others: as for `ParkedCalls`."""
        self.locks, self._holders = locks, holders
        self._parked = ParkedCalls(locks, waiting, holders, purges)
        self._lists = SharedLists(ttypes.ShowLocksResponseElement)

    @coalesced("lock")
    def lock(self, calls: list[Call]) -> list[Answer | Later]:
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
        """Return whether the request is granted by now. While it is not, the call may be parked until there is news."""
        answers = self._parked.check([call for call in calls if not call.connection.closed])
        return [_answer(call, answers.get(call)) for call in calls]

    @coalesced("unlock")
    def unlock(self, calls: list[Call]) -> list[MetastoreError | None]:
        """Give a request up. Calls that are parked behind it are answered where nothing else is in their way."""
        return self._parked.unlock([_lock_id(call) for call in calls], _answer)

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
            if isinstance(answer, LockResult) and not requests[call].txn_id and self._holders is not None:
                self._holders.took(answer.lock_id, call.connection, tied=not requests[call].connects_for_each_call)
        return answers


def _requests(calls: list[Call], most: int) -> tuple[dict[Call, LockRequest], dict[Call, LockResult | MetastoreError]]:
    """Return what each client asks for that is still there, and what is wrong with it where something is."""
    read = {call: _request(call.args[0], most) for call in calls if not call.connection.closed}
    return (
        {call: request for call, request in read.items() if isinstance(request, LockRequest)},
        {call: error for call, error in read.items() if isinstance(error, InvalidRequestError)},
    )


def _request(sent: ttypes.LockRequest, most: int) -> LockRequest | InvalidRequestError:
    """Return a request of at most so many components, or what is wrong with it."""
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
    if not sent.dbname:
        raise InvalidRequestError(f"A lock component needs a database name: {sent}")
    # The level that clients send is ignored, as Hive does: what is named is what is locked.
    table = _text(sent.tablename).lower()
    partition = canonical(_text(sent.partitionname)) if table else ""
    return WantedLock(
        type=_TYPES_READ[sent.type],
        object=LockObject(*database_name(_text(sent.dbname)), table, partition),
        operation=_OPERATIONS_READ[sent.operationType],
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


def _answer(call: Call, answer: LockResult | Exception | Later | None) -> Answer | Later:
    """Encode an answer. ``answer``: None where the client is gone."""
    if answer is None:
        return _CLIENT_IS_GONE
    if not isinstance(answer, LockResult):
        return answer
    call.log(lock_id=answer.lock_id, lock_state=answer.state.value)
    return ttypes.LockResponse(lockid=answer.lock_id, state=_STATES[answer.state], errorMessage=answer.message)
