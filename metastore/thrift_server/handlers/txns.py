"""The transaction calls: decode, ask the service, encode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from metastore.db.pieces import Pieces
from metastore.errors import InvalidRequestError, MetastoreError
from metastore.ids import TableName, database_name, table_name
from metastore.partition_names import canonical
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.write_events import WriteEvents
from metastore.thrift_server.dispatch.call import Call, coalesced
from metastore.thrift_server.responses.shared_lists import SharedLists, Whole
from metastore.thrift_server.responses.streamed import InPieces
from metastore.txns.commit.service import CommitRequest, CommitService, KeyValue, LastReplId
from metastore.txns.core.rules import AbortCode, Operation, Snapshot, TxnState, TxnType, abort_code
from metastore.txns.core.service import AbortRequest, DynamicPartitions, Heartbeat, OpenRequest, TxnService

_STATES = {
    TxnState.OPEN: ttypes.TxnState.OPEN,
    TxnState.ABORTED: ttypes.TxnState.ABORTED,
    TxnState.COMMITTED: ttypes.TxnState.COMMITTED,
}
_OPERATIONS = {
    ttypes.DataOperationType.INSERT: Operation.INSERT,
    ttypes.DataOperationType.UPDATE: Operation.UPDATE,
    ttypes.DataOperationType.DELETE: Operation.DELETE,
    ttypes.DataOperationType.UNSET: Operation.UPDATE,
    None: Operation.UPDATE,
}

LONGEST_OWNER_TEXT = 4096
MOST_ON_LOOP = 1000
"""Transactions that a heartbeat of a range may be for where it is served together with others: Hive's largest batch."""

Read = TypeVar("Read")
Answer = TypeVar("Answer")


def _is_wide(call: Call) -> bool:
    low, high = _range(call)
    return high - low >= MOST_ON_LOOP


class TxnHandlers:
    """The calls from open_txns to commit_txn, heartbeats and snapshots."""

    def __init__(self, txns: TxnService, commits: CommitService, writes: WriteEvents) -> None:
        """Prepare the handlers. ``txns`` and ``commits`` do the work; ``writes`` knows the tables of a replication."""
        self.txns = txns
        self.commits = commits
        self.writes = writes
        self._infos = SharedLists(ttypes.TxnInfo)

    @coalesced("open_txns")
    def open_txns(self, calls: list[Call]) -> list[ttypes.OpenTxnsResponse | Exception]:
        """Open transactions."""
        return [
            ids if isinstance(ids, Exception) else ttypes.OpenTxnsResponse(txn_ids=list(ids))
            for ids in served(calls, _open_request, self.txns.open_txns)
        ]

    @coalesced("commit_txn")
    def commit_txn(self, calls: list[Call]) -> list[Exception | None]:
        """Commit a transaction."""
        return list(served(calls, self._commit_request, self.commits.commit_txn))

    @coalesced("abort_txn")
    def abort_txn(self, calls: list[Call]) -> list[Exception | None]:
        """Abort a transaction."""
        return list(served(calls, _abort_request, self.txns.abort_txn))

    @coalesced("abort_txns")
    def abort_txns(self, calls: list[Call]) -> list[Exception | None]:
        """Abort those of the transactions that are open."""
        return list(served(calls, _abort_requests, self.txns.abort_txns))

    @coalesced("heartbeat")
    def heartbeat(self, calls: list[Call]) -> list[Exception | None]:
        """Keep a transaction, or a lock request without a transaction, alive."""
        return list(served(calls, _heartbeat, self.txns.heartbeat))

    @coalesced("heartbeat_txn_range", apart=_is_wide)
    def heartbeat_txn_range(self, calls: list[Call]) -> list[ttypes.HeartbeatTxnRangeResponse | Exception]:
        """Keep a range of transactions alive."""
        answers = served(calls, _range, self.txns.heartbeat_txn_range)
        return [
            answer
            if isinstance(answer, Exception)
            else ttypes.HeartbeatTxnRangeResponse(aborted=set(answer.aborted), nosuch=set(answer.nosuch))
            for answer in answers
        ]

    @coalesced("get_open_txns")
    def get_open_txns(self, calls: list[Call]) -> list[ttypes.GetOpenTxnsResponse]:
        """Return open and aborted transactions; read-only transactions count for the minimum only.

        One snapshot, taken after all of the calls have arrived, answers every one of them.
        """
        return [_open_txns(self.txns.get_open_txns())] * len(calls)

    @coalesced("get_open_txns")
    def get_open_txns_req(self, calls: list[Call]) -> list[ttypes.GetOpenTxnsResponse]:
        """Return open and aborted transactions except some types: as above, a snapshot for each set of types."""
        return self._snapshots([_hidden(call) for call in calls])

    def get_open_txns_info(self, _call: Call) -> InPieces:
        """Return open and aborted transactions with their owners; equal questions at the same time share a reading."""
        return self._infos.answer((), self._read_infos)

    def get_replayed_txns_for_policy(self, _call: Call, policy: str | None) -> ttypes.ReplayedTxnsForPolicyResult:
        """Return the open transactions of a replication policy, by their ids at its source."""
        entries = self.txns.get_replayed_txns_for_policy(policy or "").items()
        return ttypes.ReplayedTxnsForPolicyResult({str(source): str(target) for source, target in entries})

    @coalesced("add_dynamic_partitions")
    def add_dynamic_partitions(self, calls: list[Call]) -> list[Exception | None]:
        """Record the partitions that a statement wrote."""
        return list(served(calls, _partitions, self.txns.add_dynamic_partitions))

    def get_latest_txnid_in_conflict(self, call: Call, txn_id: int) -> int:
        """Return the largest transaction whose committed update the caller may have missed."""
        call.log(txn_id=txn_id)
        return self.txns.get_latest_txnid_in_conflict(txn_id)

    def seed_txn_id(self, _call: Call, rqst: ttypes.SeedTxnIdRequest) -> None:
        """Continue transaction ids at an id."""
        self.txns.seed_txn_id(rqst.seedTxnId)

    def _read_infos(self) -> tuple[Whole, Pieces[bytes]]:
        found, mark = self.txns.get_open_txns_info(_STATES)
        return partial(ttypes.GetOpenTxnsInfoResponse, mark), found

    def _snapshots(self, wanted: list[frozenset[TxnType]]) -> list[ttypes.GetOpenTxnsResponse]:
        snapshots = {hidden: _open_txns(self.txns.get_open_txns(hidden)) for hidden in dict.fromkeys(wanted)}
        return [snapshots[hidden] for hidden in wanted]

    def _commit_request(self, call: Call) -> CommitRequest:
        sent: ttypes.CommitTxnRequest = call.args[0]
        call.log(txn_id=sent.txnid)
        if sent.replPolicy is None and sent.keyValue is None and sent.replLastIdInfo is None and not sent.txn_type:
            return CommitRequest(sent.txnid, sent.exclWriteEnabled)
        pair, last, replays = sent.keyValue, sent.replLastIdInfo, _replays(sent.replPolicy, sent.txn_type)
        written = sent.writeEventInfos or ()
        return CommitRequest(
            sent.txnid,
            sent.exclWriteEnabled,
            sent.replPolicy,
            replays,
            KeyValue(pair.tableId, pair.key, pair.value) if pair else None,
            _last_repl_id(last) if last else None,
            tuple(
                (table_name(write.database, write.table), canonical(write.partition or ""), write.writeId)
                for write in written
            ),
            tuple(self.writes.of_replayed(written)) if replays else (),
        )


def served(
    calls: list[Call], read: Callable[[Call], Read], serve: Callable[[list[Read]], Sequence[Answer]]
) -> list[Answer | MetastoreError]:
    """Return one answer for each call: readable calls are served together, the others get their error."""
    requests: list[Read | MetastoreError] = []
    for call in calls:
        try:
            requests.append(read(call))
        except MetastoreError as error:
            requests.append(error)
    good = [request for request in requests if not isinstance(request, MetastoreError)]
    answers = iter(serve(good) if good else ())
    return [request if isinstance(request, MetastoreError) else next(answers) for request in requests]


def owner_text(what: str, sent: str | None) -> str:
    """Return a text about the owner of a transaction or lock. Raises: InvalidRequestError if it is too long."""
    if sent and len(sent) > LONGEST_OWNER_TEXT:
        raise InvalidRequestError(f"The {what} is {len(sent)} characters long; at most {LONGEST_OWNER_TEXT} are kept")
    return sent or ""


def named_table(db: str | None, table: str | None) -> TableName:
    """Return the table of a request. Raises: InvalidRequestError if it names none."""
    if not db or not table:
        raise InvalidRequestError("The request needs the name of a database and of a table")
    return table_name(db, table)


def txn_type(number: int | None) -> TxnType:
    """Return the type for a number of the wire; absent means DEFAULT, as an unknown number does once it is decoded."""
    return TxnType(number or 0)


def _open_request(call: Call) -> OpenRequest:
    sent: ttypes.OpenTxnRequest = call.args[0]
    return OpenRequest(
        sent.num_txns,
        owner_text("user", sent.user),
        owner_text("hostname", sent.hostname),
        owner_text("agentInfo", sent.agentInfo) or "Unknown",
        txn_type(sent.txn_type),
        sent.replPolicy,
        tuple(sent.replSrcTxnIds or ()),
    )


def _last_repl_id(sent: ttypes.ReplLastIdInfo) -> LastReplId:
    table = table_name(sent.database, sent.table, sent.catalog) if sent.table else None
    return LastReplId(
        database_name(sent.database, sent.catalog), sent.lastReplId, table, tuple(sent.partitionList or ())
    )


def _replays(policy: str | None, number: int | None) -> bool:
    """Return True if the call repeats a call of the source warehouse.

    4.x shows this by the type, 3.1 by the policy alone.
    """
    replayed = txn_type(number) is TxnType.REPL_CREATED
    if replayed and not policy:
        raise InvalidRequestError("A replicated transaction is named by replPolicy and the id that its source gave it")
    return policy is not None and (number is None or replayed)


def _partitions(call: Call) -> DynamicPartitions:
    sent: ttypes.AddDynamicPartitions = call.args[0]
    call.log(txn_id=sent.txnid)
    operation = _OPERATIONS.get(sent.operationType)
    if operation is None:
        raise InvalidRequestError(f"Partitions are written by INSERT, UPDATE or DELETE, not {sent.operationType}")
    return DynamicPartitions(
        sent.txnid,
        named_table(sent.dbname, sent.tablename),
        tuple(sent.partitionnames or ()),
        operation,
        sent.writeid or None,
    )


def _abort_request(call: Call) -> AbortRequest:
    sent: ttypes.AbortTxnRequest = call.args[0]
    call.log(txn_id=sent.txnid)
    replays = _replays(sent.replPolicy, sent.txn_type)
    code = abort_code(sent.errorCode)
    if sent.replPolicy is not None:
        code = AbortCode.REPL_REPLAYED if replays else AbortCode.REPL
    return AbortRequest(sent.txnid, code, _who(call), sent.replPolicy, replays)


def _abort_requests(call: Call) -> list[AbortRequest]:
    sent: ttypes.AbortTxnsRequest = call.args[0]
    code, who = abort_code(sent.errorCode), _who(call)
    if code is AbortCode.NONE:  # Hive 2 and 3 send none with ABORT TRANSACTIONS; an owner ends its own by abort_txn.
        code = AbortCode.QUERY_COMMAND
    return [AbortRequest(txn_id, code, who) for txn_id in sent.txn_ids or ()]


def _who(call: Call) -> str:
    return f"{call.connection.user or 'unknown user'} at {call.connection.peer}"


def _heartbeat(call: Call) -> Heartbeat:
    sent: ttypes.HeartbeatRequest = call.args[0]
    return Heartbeat(sent.txnid or 0, sent.lockid or 0)


def _range(call: Call) -> tuple[int, int]:
    sent: ttypes.HeartbeatTxnRangeRequest = call.args[0]
    return sent.min, sent.max


def _hidden(call: Call) -> frozenset[TxnType]:
    sent: ttypes.GetOpenTxnsRequest = call.args[0]
    return frozenset(txn_type(number) for number in sent.excludeTxnTypes or ())


def _open_txns(snapshot: Snapshot) -> ttypes.GetOpenTxnsResponse:
    return ttypes.GetOpenTxnsResponse(
        txn_high_water_mark=snapshot.high_watermark,
        open_txns=snapshot.open_txns,
        min_open_txn=snapshot.min_open_txn,
        abortedBits=snapshot.aborted_bits,
    )
