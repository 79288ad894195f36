"""Transactions: each step is a call, and the caller keeps its transaction open with heartbeats.

Rule: locks first, then the snapshot. Where the first locks had to wait for a change, a transaction with a later id may
take the place of the one that waited, so that it does not collide with the change at its commit: the answer says which.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, takewhile

from metastore.acid.snapshots import ValidTxnList
from metastore.acid_tables.table import AcidTable
from metastore.backoff import doubling
from metastore.client import outcome, streams, txn_calls
from metastore.client.conflicts import lost_while_waiting
from metastore.client.lock_manager import FIRST_WAIT, LockManager, LockWait
from metastore.client.lock_plan import Kind, Output, StatementLocks, Target, statement_locks, target_of
from metastore.errors import InvalidInputError, NoSuchTxnError, TxnAbortedError
from metastore.ids import TableName, full_table_name
from metastore.locks.rules import LockType
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.replace_table import replacing
from metastore.txns.core.rules import AbortCode, TxnType
from metastore.txns.streams.rules import StreamBatch

_EXCLUDING = frozenset({LockType.EXCL_WRITE, LockType.EXCLUSIVE})
_KINDS = {**Kind.__members__, "DDL_EXCLUSIVE": Kind.EXCLUSIVE_DDL}
_REOPENINGS = 10
_CEILING = timedelta(seconds=5)
_LONGEST_WAIT_S = 24 * 3600
_LONGEST_TEXT = 1000


@dataclass(frozen=True)
class Within(LockWait):
    """Waits for locks as long as the caller says."""

    patience: timedelta = timedelta(0)

    def delays(self) -> Iterator[timedelta]:
        """Pauses that add up to the patience, or a little less."""
        pauses = list(doubling(FIRST_WAIT, _CEILING, 8 + int(self.patience / _CEILING)))
        ends = takewhile(lambda end: end <= self.patience, accumulate(pauses))
        return (pause for pause, _ in zip(pauses, ends, strict=False))


def begin(call: PlannerCall) -> Answer:
    """Open a transaction."""
    txn_id = _open(call, call.body)
    return {"txn": txn_id, "timeout_s": call.settings.timeout.total_seconds()}


def lock(call: PlannerCall) -> Answer:
    """Take all locks of a statement, waiting for them.

    Raises: LockNotAcquiredError, TxnAbortedError, WriteConflictError (the snapshot has missed a change).
    """
    txn_id, wanted = call.body.number("txn"), _locks(call)
    if not wanted.locks:
        return {"lock": None, "txn": txn_id, "vouched": True}
    lock_id = _acquire(call, txn_id, wanted)
    if not any(component.type in _EXCLUDING for component in wanted.locks):
        return {"lock": lock_id, "txn": txn_id, "vouched": True}
    for _ in range(_REOPENINGS):
        latest = txn_calls.latest_conflict(call.client, txn_id)
        if latest is None or not latest > 0:
            return {"lock": lock_id, "txn": txn_id, "vouched": latest is not None}
        if call.body.has("txns"):
            if not ValidTxnList.parse(call.body.text("txns")).is_valid(latest):
                tables = {(component.db, component.table) for component in wanted.locks}
                raise lost_while_waiting(call.client, txn_id, latest, tables)
            return {"lock": lock_id, "txn": txn_id, "vouched": False}
        if latest <= txn_id or not call.body.has("reopen"):
            return {"lock": lock_id, "txn": txn_id, "vouched": latest <= txn_id}
        outcome.abort(call.client, txn_id, AbortCode.CONCURRENT_COMMITTED)
        txn_id = _open(call, call.body.body("reopen"))
        lock_id = _acquire(call, txn_id, wanted)
    raise TxnAbortedError("Others keep changing what this transaction locks. Start again later.")


def snapshot(call: PlannerCall) -> Answer:
    """Return what the transaction may read, of each table; to be taken once its first locks are held.

    With ``txns``, of an earlier answer, further tables are as they were then. ``reads``: all tables that it reads,
    these among them, where it knows: the cleaning of others does not wait for it. ``said``, and of the answer: whether
    a metastore knows so. Raises: MetaError where a table that it names later has been cleaned since, or may be.
    """
    txn_id, has_said = call.body.number("txn"), call.body.flag("said")
    txns = ValidTxnList.parse(call.body.text("txns")) if call.body.has("txns") else None
    tables, reads = _named(call.body.texts("tables")), _named(call.body.texts("reads"))
    if reads:
        every = list(dict.fromkeys([*reads, *tables]))
        txns, lists, has_said = txn_calls.read_snapshot(call.client, txn_id, every, txns, has_said=has_said)
    else:
        txns = txns or txn_calls.valid_txns(call.client, txn_id)
        lists = txn_calls.valid_write_ids(call.client, txns, tables)
    write_ids = {table: lists[table].format() for table in tables}
    return {"txns": txns.format(), "write_ids": write_ids, "said": has_said}


def heartbeat(call: PlannerCall) -> Answer:
    """Keep the transaction open for another time-out. Raises: TxnAbortedError, NoSuchTxnError: it is lost."""
    txn_calls.heartbeat(call.client, call.body.number("txn"))
    return {}


def commit(call: PlannerCall) -> Answer:
    """Commit. Raises: WriteConflictError, TxnAbortedError; AnswerLostError: it may have been done.

    ``rows``: how many it writes, for the history. ``replaces``: new definitions of tables whose rows it has replaced.
    ``unwritten``: tables that it has locked for a statement that failed before it wrote: they get a write id, no rows.
    With ``batch`` the table remembers it. Raises: AlreadyExistsError too: it has it already, and the transaction is
    still open; so it is with InvalidOperationError.
    """
    body = call.body
    kind = body.choice("kind", TxnType, TxnType.DEFAULT)
    batch = _stream_batch(body.body("batch")) if body.has("batch") else None
    for name in map(full_table_name, body.texts("unwritten")):
        txn_calls.allocate_write_id(call.client, body.number("txn"), name.db, name.table)
    rows = [(counted.table(), counted.number("inserted"), counted.number("deleted")) for counted in body.bodies("rows")]
    if rows:
        txn_calls.note_rows(call.client, body.number("txn"), rows)
    request = txn_calls.commit_request(body.number("txn"), kind, is_vouched=body.flag("vouched"), batch=batch)
    definitions = list(body.bodies("replaces"))
    with replacing(call, definitions, body.number("txn")) if definitions else nullcontext():
        txn_calls.commit(call.client, request)
    return {}


def has_batch(call: PlannerCall) -> Answer:
    """Say whether a table has a streaming query's batch. Raises: InvalidOperationError: the query was set back."""
    return {"has_batch": streams.has_batch(call.client, *_stream_batch(call.body))}


def _open(call: PlannerCall, caller: Body) -> int:
    """Open a transaction of the caller's. The user of a certificate counts more than what ``caller`` says."""
    return txn_calls.open_txn(
        call.client,
        caller.choice("kind", TxnType, TxnType.DEFAULT),
        user=call.user or caller.text("user"),
        host=caller.text("host"),
        agent=caller.text("agent")[:_LONGEST_TEXT],
    )


def _stream_batch(sent: Body) -> tuple[TableName, StreamBatch]:
    """Return a batch as callers send it, and the table that it goes into."""
    return sent.table(), StreamBatch(sent.text("query"), sent.number("batch"), sent.text("plan")).required()


def abort(call: PlannerCall) -> Answer:
    """Abort. ``aborted``: whether what it wrote may be removed, which is false where it may be committed."""
    try:
        outcome.abort(call.client, call.body.number("txn"))
    except NoSuchTxnError:
        return {"aborted": False}
    return {"aborted": True}


def _named(tables: Sequence[str]) -> list[str]:
    """Return names of tables as the metastore has them."""
    return [f"{name.db}.{name.table}" for name in map(full_table_name, tables)]


def _acquire(call: PlannerCall, txn_id: int, wanted: StatementLocks) -> int:
    body = call.body
    patience = timedelta(seconds=min(body.number("wait_s", 0), _LONGEST_WAIT_S))
    return LockManager(call.client, Within(patience=patience)).acquire(
        wanted,
        txn_id=txn_id,
        user=call.user or body.text("user", call.client.user),
        host=body.text("host", ""),
        agent_info=body.text("agent", "")[:_LONGEST_TEXT],
        stop=call.gone,
    )


def _locks(call: PlannerCall) -> StatementLocks:
    tables: dict[TableName, AcidTable] = {}

    def target(name: TableName, *, is_written: bool) -> Target:
        if name not in tables:
            tables[name] = AcidTable.of(name, call.client.get_table(name.db, name.table))
        return target_of(tables[name], is_written=is_written)

    inputs = [target(full_table_name(text), is_written=False) for text in call.body.texts("reads")]
    outputs = []
    for written in call.body.bodies("writes"):
        place = target(written.table(), is_written=True)
        if written.has("partition"):
            place = place._replace(partition=written.text("partition"), is_dynamic=False)
        outputs.append(Output(place, _kind(written)))
    return statement_locks(inputs, outputs, call.settings.modes)


def _kind(written: Body) -> Kind:
    text = written.text("kind")
    if text not in _KINDS:
        raise InvalidInputError(f"{written.place}kind must be one of {', '.join(_KINDS)}, not {text!r}.")
    return _KINDS[text]
