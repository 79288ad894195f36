"""Rows of transactions while they live: opening, heartbeats, aborts, snapshots.

**Ids.** One counter row; advancing it and inserting the rows is one PostgreSQL transaction, so ids become visible in
order and no id at or below a snapshot's mark can turn up later (TXN-24). Opening does not wait for the disk, yet an id
that a client knows must never be allocated again after a crash. So ids are reserved on disk in blocks:
``txn_counter.reserved_until`` is raised durably before any id below it is handed out. ``txn_id_block`` is an unlogged
table with one row: PostgreSQL empties it whenever it recovers from a crash (also when a replica is promoted), exactly
when asynchronous commits may be lost. If the row is missing, the rest of the block may have been used, and allocation
continues behind it. Skipped ids have no record, which every reader takes for "finished" (ADR 0003).

**Locks.** A call that ends a transaction first locks its row FOR UPDATE, in a statement of its own and in id order; a
call that adds something to a transaction (a lock, a component, a write id) locks the row FOR KEY SHARE or more. So the
next statement of the ending side sees everything that was added. Every call locks transaction rows before the counter
row.
"""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from sys import byteorder
from typing import Any, NamedTuple

from metastore.db import wires
from metastore.db.arrays import bigints, columns, literal
from metastore.db.engine import Database, PgTx
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.db.wires import SortedList, ThriftField, WireType
from metastore.ids import TableName
from metastore.txns.core.rules import (
    BY_ANOTHER,
    AbortCode,
    Component,
    Snapshot,
    TxnRecord,
    TxnState,
    TxnType,
    encode_bits,
    required_open,
)
from metastore.txns.remembering.store import REMEMBERED

_SQL = Statements(__file__)

ID_BLOCK = 10_000

LISTED = "state <> 'committed' AND NOT emptied"
"""The transactions that snapshots name, in the words of their partial index."""

_OPEN = Prepared(_SQL.text("open"))

_RESERVE = _SQL.text("reserve")

# Rows are locked in id order, transactions before lock requests (hence the count), so that batches cannot deadlock.
# Without lock requests the index gives them in that order, for half the price.
_HEARTBEAT = Prepared("""
UPDATE txns SET last_heartbeat_at = metastore_now(), heartbeat_count = heartbeat_count + 1,
                longest_gap = greatest(longest_gap, metastore_now() - last_heartbeat_at)
WHERE id = ANY(%(txns)s::bigint[]) AND state = 'open' RETURNING id""")
_HEARTBEAT_WITH_LOCKS = Prepared(_SQL.text("heartbeat_with_locks"))

# The other effects of an abort (of a commit: commit/commit.sql): it deletes locks, read tables and rebuild locks.
_RELEASE = """
unlocked AS (DELETE FROM locks WHERE txn_id = ANY(ARRAY(SELECT id FROM ended)) AND txn_id <> 0),
unread AS (DELETE FROM min_history WHERE txn_id = ANY(ARRAY(SELECT id FROM ended))),
rebuilt AS (DELETE FROM materialization_locks WHERE txn_id = ANY(ARRAY(SELECT id FROM ended)))"""

LOCK = "SELECT FROM txns WHERE id = ANY(%(ids)s::bigint[]) ORDER BY id FOR UPDATE"

_BY_ANOTHER = f"ANY('{{{','.join(str(int(code)) for code in sorted(BY_ANOTHER))}}}'::int[])"

_ABORT = Prepared(LOCK, _SQL.text("abort", by_another=_BY_ANOTHER, remembered=REMEMBERED, release=_RELEASE))

SNAPSHOT = f"""
SELECT (SELECT next_txn_id - 1 FROM txn_counter),
       string_agg(int8send(id), ''::bytea) FILTER (WHERE type <> ALL(%(hidden)s::smallint[])),
       string_agg(int8send(id), ''::bytea) FILTER (WHERE state = 'aborted' AND type <> ALL(%(hidden)s::smallint[])),
       min(id) FILTER (WHERE state = 'open')
FROM (SELECT id, state, type FROM txns WHERE {LISTED} ORDER BY id) AS listed"""
_SNAPSHOT = Prepared(SNAPSHOT)

_STATES = Prepared("SELECT id, state FROM txns WHERE id = ANY(%(ids)s::bigint[])")

_INSERT_COMPONENTS = Prepared("""
INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
SELECT * FROM unnest(%(c0)s::bigint[], %(c1)s::text[], %(c2)s::text[], %(c3)s::text[], %(c4)s::text[], %(c5)s::text[],
                     %(c6)s::bigint[])
ON CONFLICT DO NOTHING""")
_NAME_PARTITIONS = Prepared("""SELECT name_partitions(
    %(txns)s::bigint[], %(w0)s::bigint[], %(w1)s::text[], %(w2)s::text[], %(w3)s::text[],
    %(c0)s::bigint[], %(c1)s::text[], %(c2)s::text[], %(c3)s::text[], %(c4)s::text[], %(c5)s::text[],
    %(c6)s::bigint[])""")

_KEEP_OPEN = Prepared("SELECT id, state, type FROM txns WHERE id = ANY(%(ids)s::bigint[]) ORDER BY id FOR KEY SHARE")

_SELECT_LATEST_CONFLICT = _SQL.text("select_latest_conflict")


class Opening(NamedTuple):
    """One request for transactions."""

    size: int
    user: str
    host: str
    agent_info: str
    txn_type: TxnType = TxnType.DEFAULT


class Opened(NamedTuple):
    """The first of the consecutive ids allocated, and the instant."""

    first_id: int
    at: datetime


class AbortedTxn(NamedTuple):
    """A transaction before its abort: its previous state, and the replication policy whose mapping was removed."""

    txn_id: int
    state: TxnState
    txn_type: TxnType
    policy: str | None


def insert_txns(db: Database, wanted: Sequence[Opening], *, durable: bool) -> Opened:
    """Open the wanted transactions, ids consecutive in the order of the list, in one round trip.

    Serialises on: the counter row, until COMMIT.
    """
    parameters = _opening_parameters(wanted)
    rows = db.once(_OPEN, parameters, durable=durable)
    while not rows:
        db.once(_RESERVE, {"ids": parameters["total"] + ID_BLOCK})
        rows = db.once(_OPEN, parameters, durable=durable)
    return Opened(*rows[0])


def insert_txns_within(pg: PgTx, wanted: Opening) -> int:
    """Open transactions as part of a larger (durable) PostgreSQL transaction; return the first of the consecutive ids.

    Serialises on: the counter row, until COMMIT.
    """
    pg.sql(_RESERVE, {"ids": wanted.size + ID_BLOCK})
    [(first_id, _)] = pg.sql(_OPEN, _opening_parameters([wanted]))
    return int(first_id)


def _opening_parameters(wanted: Sequence[Opening]) -> dict[str, Any]:
    total = 0
    starts: list[int] = []
    for opening in wanted:
        starts.append(total)
        total += opening.size
    return {
        "total": total,
        "starts": bigints(starts),
        "sizes": bigints(opening.size for opening in wanted),
        "types": bigints(opening.txn_type.value for opening in wanted),
        "users": literal([opening.user for opening in wanted]),
        "hosts": literal([opening.host for opening in wanted]),
        "agents": literal([opening.agent_info for opening in wanted]),
    }


def update_counter(pg: PgTx, next_txn_id: int) -> int | None:
    """Set the next id and return None; return the present mark, and change nothing, if that is not below it."""
    [(mark,)] = pg.sql("SELECT FROM txn_counter FOR UPDATE; SELECT next_txn_id - 1 FROM txn_counter")
    if mark >= next_txn_id:
        return int(mark)
    pg.sql(
        """INSERT INTO txn_id_block VALUES (1) ON CONFLICT DO NOTHING;
              INSERT INTO skipped_txn_ids SELECT next_txn_id, %(next)s - 1, metastore_now()
              FROM txn_counter WHERE next_txn_id < %(next)s;
              UPDATE txn_counter SET next_txn_id = %(next)s,
                                     reserved_until = greatest(reserved_until, %(next)s + %(block)s)""",
        {"next": next_txn_id, "block": ID_BLOCK},
    )
    return None


def count_open(db: Database) -> tuple[int, datetime]:
    """Count the open transactions; return also the instant."""
    [(count, at)] = db.once(f"SELECT count(*), metastore_now() FROM txns WHERE {LISTED} AND state = 'open'")
    return int(count), at


def update_heartbeats(
    db: Database, txn_ids: Collection[int], lock_ids: Collection[int], *, durable: bool = False
) -> tuple[set[int], set[int]]:
    """Refresh open transactions and lock requests; return those that existed."""
    if not lock_ids:
        return {txn_id for (txn_id,) in db.once(_HEARTBEAT, {"txns": bigints(txn_ids)}, durable=durable)}, set()
    [(beaten, held)] = db.once(
        _HEARTBEAT_WITH_LOCKS, {"txns": bigints(txn_ids), "locks": bigints(lock_ids)}, durable=durable
    )
    return set(beaten or ()), set(held or ())


def select_states(db: Database, txn_ids: Collection[int]) -> dict[int, TxnState]:
    """Return the recorded states of these transactions; unknown ids are absent."""
    rows = db.once(_STATES, {"ids": bigints(txn_ids)})
    return {txn_id: TxnState(state) for txn_id, state in rows}


def lock_for_adding(pg: PgTx, txn_ids: Collection[int]) -> dict[int, TxnRecord]:
    """Return the transactions' records, locked so that none ends before this PostgreSQL transaction does."""
    rows = pg.sql(_KEEP_OPEN, {"ids": bigints(txn_ids)})
    return {txn_id: TxnRecord(txn_id, TxnState(state), TxnType(kind)) for txn_id, state, kind in rows}


def lock_open(pg: PgTx, txn_ids: Sequence[int]) -> dict[int, TxnRecord]:
    """Lock as ``lock_for_adding``, for transactions that must be open. Raises: TxnAbortedError, NoSuchTxnError."""
    records = lock_for_adding(pg, txn_ids)
    for txn_id in txn_ids:
        refusal = required_open(txn_id, records[txn_id].state if txn_id in records else None)
        if refusal is not None:
            raise refusal
    return records


def silence(pg: PgTx) -> None:
    """Suppress events for the rest of this PostgreSQL transaction."""
    pg.sql("SET LOCAL metastore.silent = 'on'")


def _abort_parameters(aborts: Iterable[tuple[int, AbortCode, str]]) -> dict[str, object]:
    ids, codes, reasons = zip(*aborts, strict=True)
    return {"ids": bigints(ids), "codes": bigints(code.value for code in codes), "reasons": literal(reasons)}


def abort_at_once(db: Database, aborts: Collection[tuple[int, AbortCode, str]], *, durable: bool) -> list[AbortedTxn]:
    """Abort those of the (id, code, reason) that are open, in one round trip.

    Without ``durable`` a crash may undo the abort: the transaction is open again, and expires if it is not used.
    """
    rows = db.once(_ABORT, _abort_parameters(aborts), durable=durable)
    return [AbortedTxn(txn_id, TxnState(state), TxnType(kind), policy) for txn_id, state, kind, policy in rows]


def abort(pg: PgTx, aborts: Collection[tuple[int, AbortCode, str]]) -> list[AbortedTxn]:
    """Abort those of the (id, code, reason) that are open, as part of a larger PostgreSQL transaction."""
    rows = pg.sql(_ABORT, _abort_parameters(aborts))
    return [AbortedTxn(txn_id, TxnState(state), TxnType(kind), policy) for txn_id, state, kind, policy in rows]


def select_snapshot(db: Database, hidden: Collection[TxnType] = ()) -> Snapshot:
    """Return the mark, open and aborted transactions, read in one statement, hence as of one instant."""
    [row] = db.once(_SNAPSHOT, {"hidden": [int(txn_type) for txn_type in hidden]})
    return unpacked(*row)


def unpacked(mark: int, packed: bytes | None, packed_aborted: bytes | None, min_open: int | None) -> Snapshot:
    """Build a snapshot from a row of ``SNAPSHOT``.

    Ids travel as packed integers: a list of 10,000 costs Python almost nothing.
    """
    ids, aborted = _integers(packed), frozenset(_integers(packed_aborted))
    bits = encode_bits(bytes(map(aborted.__contains__, ids))) if aborted else b""
    return Snapshot(mark, ids, bits, min_open)


def _integers(packed: bytes | None) -> list[int]:
    numbers = array("q", bytes(packed or b""))
    if byteorder == "little":
        numbers.byteswap()
    return numbers.tolist()


def info_list(states: Mapping[TxnState, int]) -> SortedList:
    """Return the list of open and aborted transactions, ascending, with the mark beside it.

    ``states``: the numbers of the stored states in the protocol.
    """
    mark = "(SELECT int8send(next_txn_id - 1) FROM txn_counter)"
    in_order = f"(SELECT * FROM txns WHERE {LISTED} ORDER BY id) AS listed"  # The index is in this order.
    return SortedList(_info(tuple(states.items())), in_order, "id", (), mark)


@cache
def _info(states: Sequence[tuple[TxnState, int]]) -> str:
    """Build the query, once for each set of states."""
    return wires.struct(
        [
            ThriftField(1, WireType.I64, "id"),
            ThriftField(2, WireType.I32, wires.number(states, "state")),
            ThriftField(3, WireType.TEXT, '"user"'),
            ThriftField(4, WireType.TEXT, "host"),
            ThriftField(5, WireType.TEXT, "agent_info"),
            ThriftField(6, WireType.I32, "heartbeat_count"),
            ThriftField(8, WireType.I64, wires.millis("started_at")),
            ThriftField(9, WireType.I64, wires.millis("last_heartbeat_at")),
        ]
    )


def has_completed_components(db: Database, txn_ids: Collection[int]) -> set[int]:
    """Return those of the transactions that committed writes which compaction still knows about."""
    rows = db.once(
        "SELECT DISTINCT txn_id FROM completed_txn_components WHERE txn_id = ANY(%s::bigint[])", (bigints(txn_ids),)
    )
    return {txn_id for (txn_id,) in rows}


def insert_components(pg: PgTx, components: Iterable[Component]) -> None:
    """Record the writes that a transaction declares; existing records stay as they are."""
    pg.sql(_INSERT_COMPONENTS, _component_columns(components))


def name_partitions(db: Database, written: Collection[tuple[int, TableName]], components: Iterable[Component]) -> bool:
    """Record written partitions instead of "anywhere in the table"; return whether all transactions are open.

    ``written``: (transaction, table), each with all of its ``components``. All or nothing, in one round trip.
    """
    rows = [(txn_id, *name) for txn_id, name in sorted(written)]
    [(done,)] = db.once(
        _NAME_PARTITIONS,
        {
            "txns": bigints({txn_id for txn_id, _ in written}),
            **_component_columns(components),
            **{f"w{place}": column for place, column in enumerate(columns(rows, 4))},
        },
    )
    return bool(done)


def _component_columns(components: Iterable[Component]) -> dict[str, str]:
    rows = [
        (component.txn_id, *component.name, component.partition, str(component.operation), component.write_id)
        for component in components
    ]
    return {f"c{place}": column for place, column in enumerate(columns(rows, 7))}


def select_latest_conflict(db: Database, txn_id: int) -> int:
    """Return the largest transaction that committed an update of a target of this transaction; 0 if none.

    Unlike the check at commit, a component without partition covers the whole table.
    """
    [(latest,)] = db.once(_SELECT_LATEST_CONFLICT, {"txn": txn_id})
    return int(latest)
