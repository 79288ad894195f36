"""Decisions about transactions: states, conflicts at commit, snapshots, expiry.

Rules: a transaction moves from open to committed or aborted once; of two overlapping transactions that update or delete
in the same partition (table, where there is none) the first to commit wins. Nothing here does I/O.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import NamedTuple

from metastore.acid.snapshots import ValidTxnList, decode_aborted_bits
from metastore.errors import NoSuchTxnError, TxnAbortedError
from metastore.ids import TableName

_DIGITS = bytes.maketrans(b"\0\1", b"01")


class TxnState(StrEnum):
    """The states of a transaction as stored; on the wire COMMITTED 1, ABORTED 2, OPEN 3."""

    OPEN = "open"
    ABORTED = "aborted"
    COMMITTED = "committed"


class TxnType(IntEnum):
    """The types of transactions, as on the wire and as stored."""

    DEFAULT = 0
    REPL_CREATED = 1
    READ_ONLY = 2
    COMPACTION = 3
    MATER_VIEW_REBUILD = 4
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6


class Operation(StrEnum):
    """The operations of a component on an object; one letter, as stored and as in messages."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"
    COMPACT = "c"


class AbortCode(IntEnum):
    """The reasons for an abort, with Hive's numbers (TXN-8); those from 52000 on are ours."""

    NONE = 50000
    QUERY_COMMAND = 50001
    CONCURRENT_COMMITTED = 50002
    WRITE_CONFLICT = 50003
    TIMEOUT = 50004
    ROLLBACK = 50005
    COMPACTION = 50006
    MSCK = 50007
    MIGRATION = 50008
    REPL = 51000
    REPL_REPLAYED = 51001
    REPL_WRITE_ID = 51002
    DEADLOCK = 52000
    RESTORED = 52001


REASONS = {
    AbortCode.NONE: "by a client, without a reason",
    AbortCode.QUERY_COMMAND: "by an ABORT TRANSACTIONS command",
    AbortCode.CONCURRENT_COMMITTED: "because a concurrent transaction had committed",
    AbortCode.WRITE_CONFLICT: "because of a write conflict",
    AbortCode.TIMEOUT: "because no heartbeat arrived in time",
    AbortCode.ROLLBACK: "by a rollback of its client",
    AbortCode.COMPACTION: "by the compactor",
    AbortCode.MSCK: "by msck",
    AbortCode.MIGRATION: "by a migration",
    AbortCode.REPL: "by the replication driver",
    AbortCode.REPL_REPLAYED: "by a replayed abort of the source warehouse",
    AbortCode.REPL_WRITE_ID: "to mark a write id that is aborted in the source warehouse",
    AbortCode.DEADLOCK: "to end a deadlock",
    AbortCode.RESTORED: "because the database was restored from a backup",
}

BY_ANOTHER = frozenset({AbortCode.QUERY_COMMAND, AbortCode.TIMEOUT, AbortCode.DEADLOCK, AbortCode.RESTORED})
"""The reasons for an abort by another than the owner, who may continue, and still publish (ADR 0038)."""

RECORDS_COMMIT_POINT = frozenset({TxnType.COMPACTION, TxnType.SOFT_DELETE})
"""Types whose commit point is noted on the compaction queue entry: the cleaner waits for readers from before it."""

COMPONENTS_STAY_BEHIND = frozenset({TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION, TxnType.READ_ONLY})
"""Types whose components are dropped at commit instead of becoming completed components."""

LARGEST_ID = 2**62
"""The largest id that may be seeded: there must be room for all that follow."""

HEARTBEAT_RANGE_LIMIT = 100_000
KEY_VALUE_PREFIX = "_meta"


class TxnRecord(NamedTuple):
    """The stored fields of a transaction that matter for a decision."""

    txn_id: int
    state: TxnState
    txn_type: TxnType


def abort_code(number: int | None) -> AbortCode:
    """Return the code for a client's errorCode; unknown numbers mean "none given"."""
    return AbortCode(number) if number in list(AbortCode) else AbortCode.NONE


class Component(NamedTuple):
    """One object that a transaction declared to write. ``partition`` is "" if there is none."""

    txn_id: int
    name: TableName
    partition: str
    operation: Operation
    write_id: int | None = None

    @property
    def changes_rows(self) -> bool:
        """True if the component changes existing rows: only such components conflict."""
        return self.operation in {Operation.UPDATE, Operation.DELETE}

    def __str__(self) -> str:
        """Return ``db/table/partition``, as conflict messages name it."""
        return "/".join(part for part in (self.name.db, self.name.table, self.partition) if part)


class CommittedWrite(NamedTuple):
    """One row of a committed transaction's write set.

    ``guarded``: until it had committed, it held a lock on the object that keeps EXCL_WRITE and EXCLUSIVE locks waiting.
    """

    txn_id: int
    commit_id: int
    name: TableName
    partition: str
    operation: Operation
    guarded: bool = False


class Conflict(NamedTuple):
    """The reason why a commit is refused: the component that lost and the committed write that won."""

    component: Component
    winner: CommittedWrite

    def message(self, commit_id: int) -> str:
        """Return Hive's text; ``commit_id`` is the point at which the loser tried to commit."""
        lost, won = self
        return (
            f"Aborting [txnid:{lost.txn_id},{commit_id}] due to a write conflict on {lost} committed by "
            f"[txnid:{won.txn_id},{won.commit_id}] {lost.operation}/{won.operation}"
        )


def conflicts(component: Component, written: CommittedWrite) -> bool:
    """Return True if the first committer wins: both change rows of an object, and it committed after this one began."""
    return (
        component.changes_rows
        and written.operation in {Operation.UPDATE, Operation.DELETE}
        and component.name == written.name
        and component.partition == written.partition
        and component.txn_id != written.txn_id
        and component.txn_id <= written.commit_id
    )


def first_conflict(components: Iterable[Component], written: Sequence[CommittedWrite]) -> Conflict | None:
    """Return the conflict with the earliest winner, and the first by name among its conflicts.

    None if the transaction may commit.
    """
    by_object: dict[tuple[TableName, str], list[CommittedWrite]] = {}
    for theirs in written:
        by_object.setdefault((theirs.name, theirs.partition), []).append(theirs)
    met = (
        Conflict(mine, theirs)
        for mine in components
        for theirs in by_object.get((mine.name, mine.partition), ())
        if conflicts(mine, theirs)
    )
    return min(
        met,
        key=lambda heartbeat: (
            heartbeat.winner.commit_id,
            heartbeat.winner.txn_id,
            heartbeat.component.name,
            heartbeat.component.partition,
            heartbeat.component.operation,
            heartbeat.winner.operation,
        ),
        default=None,
    )


class ExclusiveLock(NamedTuple):
    """An acquired EXCL_WRITE or EXCLUSIVE lock of a transaction; "" where it is on a whole table or database."""

    txn_id: int
    catalog: str
    db: str
    table: str
    partition: str


def shielded(components: Iterable[Component], held: Sequence[ExclusiveLock]) -> bool:
    """Return True if every row-changing component lies below an exclusive lock of its own transaction.

    Only such a client may switch the conflict check off (exclWriteEnabled): it re-read its snapshot under the lock.
    Even that covers only guarded writes, which the lock had to wait for; Trino updates under shared locks.
    """
    return all(any(_covers(lock, component) for lock in held) for component in components if component.changes_rows)


def _covers(lock: ExclusiveLock, component: Component) -> bool:
    return (
        lock.txn_id == component.txn_id
        and (lock.catalog, lock.db) == component.name.database
        and lock.table in {"", component.name.table}
        and lock.partition in {"", component.partition}
    )


class Snapshot(NamedTuple):
    """The answer of get_open_txns: every unlisted id up to the mark is finished, and not aborted with data."""

    high_watermark: int
    open_txns: list[int]
    aborted_bits: bytes
    min_open_txn: int | None


def encode_bits(aborted: bytes) -> bytes:
    """Return java.util.BitSet bytes from one byte (0 or 1) per listed transaction; trailing zero bytes are dropped."""
    if 1 not in aborted:
        return b""
    bits = int(aborted[::-1].translate(_DIGITS), 2)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def reader_snapshot(snapshot: Snapshot, current_txn: int = 0) -> ValidTxnList:
    """Convert a snapshot to a transaction's read list, as clients do (TxnCommonUtils.createValidReadTxnList).

    A transaction never sees a later id, even of a committed transaction; its own id is not an exception.
    """
    mark = min(current_txn, snapshot.high_watermark) if current_txn > 0 else snapshot.high_watermark
    aborted = decode_aborted_bits(snapshot.open_txns, snapshot.aborted_bits)
    listed: Iterable[int] = snapshot.open_txns
    if current_txn > 0:
        listed = [txn_id for txn_id in listed if txn_id < current_txn]
        aborted = aborted.intersection(listed)
    opened = (txn_id for txn_id in listed if txn_id not in aborted) if aborted else listed
    return ValidTxnList(mark, min(opened, default=None), tuple(listed), aborted)


def accepts_more(open_count: int, limit: int, *, refusing: bool) -> bool:
    """Return True if more may open: after the limit is reached, only once the count is below 90 % of it."""
    return open_count < (limit * 9 // 10 if refusing else limit)


class ExpiryCutoffs(NamedTuple):
    """The cutoffs of expiry: open transactions whose last heartbeat is older have expired."""

    normal: datetime
    replicated: datetime


def expiry_cutoffs(now: datetime, timeout: timedelta, repl_timeout: timedelta) -> ExpiryCutoffs:
    """Return the cutoffs. Replicated transactions live as long as the source warehouse needs to send their end."""
    return ExpiryCutoffs(now - timeout, now - repl_timeout)


class LastHeard(NamedTuple):
    """The last heartbeats of the most silent owners, as of ``now``; None if there is no owner."""

    now: datetime
    normal: datetime | None
    replicated: datetime | None


def any_expired(heard: LastHeard, cutoffs: ExpiryCutoffs) -> bool:
    """Return True if any of the owners was silent for too long."""
    return (heard.normal is not None and heard.normal < cutoffs.normal) or (
        heard.replicated is not None and heard.replicated < cutoffs.replicated
    )


def no_such_txn(txn_id: int) -> NoSuchTxnError:
    """Return Hive's error for a transaction without a record."""
    return NoSuchTxnError(f"No such transaction txnid:{txn_id}", txn_id)


def already_committed(txn_id: int) -> NoSuchTxnError:
    """Return Hive's error for a transaction that must be open but is committed."""
    return NoSuchTxnError(f"Transaction txnid:{txn_id} is already committed.", txn_id)


def already_aborted(txn_id: int) -> TxnAbortedError:
    """Return Hive's error for a transaction that must be open but is aborted."""
    return TxnAbortedError(f"Transaction txnid:{txn_id} already aborted", txn_id)


def required_open(txn_id: int, state: TxnState | None) -> NoSuchTxnError | TxnAbortedError | None:
    """Return the error for a change to a transaction that is not open."""
    if state is TxnState.OPEN:
        return None
    if state is TxnState.ABORTED:
        return already_aborted(txn_id)
    return already_committed(txn_id) if state else no_such_txn(txn_id)
