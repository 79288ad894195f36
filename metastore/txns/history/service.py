"""Outcomes of transactions: for clients that lost an answer, for operators, and for the texts of errors.

The records are written where transactions end, and where their rows are removed; this service records only the row
counts of writers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from metastore.config import TxnSettings
from metastore.db.engine import Database
from metastore.errors import EndedError, InvalidRequestError, MetastoreError
from metastore.ids import TableName
from metastore.txns.core.rules import TxnState, TxnType
from metastore.txns.history import rules as history_rules
from metastore.txns.history import store as history_store
from metastore.txns.history.rules import Answer, LostConflict, Record

MOST_TABLES = 1000
"""Tables of one transaction of which rows are noted."""


class Write(NamedTuple):
    """An object that a transaction wrote or declared; ``operation`` as ``history_rules.operation_name`` names it."""

    name: TableName
    partition: str
    operation: str
    write_id: int | None


class TableCommit(NamedTuple):
    """The changes of a transaction to a table, or its declarations; ``is_complete``: all of them are on record."""

    write_id: int
    txn_id: int
    user: str
    host: str
    agent_info: str
    started_at: datetime
    committed_at: datetime
    operations: list[str]
    partitions: int
    is_complete: bool
    inserted: int | None
    deleted: int | None
    is_aborted: bool


class HeldLock(NamedTuple):
    """A lock of a transaction, as it is or as it was when the transaction was aborted."""

    ext_id: int
    name: TableName
    partition: str
    type: str
    state: str
    requested_at: datetime
    acquired_at: datetime | None


class Life(NamedTuple):
    """A transaction's life as far as it is recorded.

    ``expires_in``: the time for which an open transaction may stay silent. ``longest_silence``: includes the last one.
    """

    answer: Answer
    record: Record | None
    from_history: bool
    expires_in: timedelta | None
    longest_silence: timedelta | None
    writes: list[Write]
    write_count: int
    locks: list[HeldLock]
    lock_count: int
    conflict: LostConflict | None
    winner: Record | None


@dataclass(frozen=True)
class HistoryService:
    """The history of transactions."""

    db: Database
    settings: TxnSettings

    def outcome(self, txn_id: int) -> Answer:
        """Return the outcome of a transaction: committed, aborted, open, never opened, or unknown.

        This waits for a commit or an abort in progress: PostgreSQL goes on with it when the server that sent it has
        lost the connection. Raises: UnavailableError when that takes longer than metastore.database.lock.timeout.
        """
        return history_rules.outcome(history_store.select_settled(self.db, txn_id))

    def explain(self, txn_id: int) -> Life:
        """Return all records of the transaction."""
        left = history_store.select_life(self.db, txn_id)
        record = left.evidence.record
        conflict = history_rules.conflict(record.abort_reason) if record else None
        winner = history_store.select_evidence(self.db, [conflict.winner])[conflict.winner].record if conflict else None
        answer = history_rules.outcome(left.evidence)
        why_listed = history_rules.listed(history_store.select_left(self.db, txn_id))
        if why_listed is not None:
            answer = answer._replace(reason=f"{answer.reason}; {why_listed}")
        return Life(
            answer,
            record,
            left.evidence.from_history,
            self._expires_in(record, left.at),
            record and max(record.longest_gap, (record.ended_at or left.at) - record.last_heartbeat_at),
            sorted((_write(row) for row in left.writes), key=lambda write: write[:3]),
            left.write_count,
            sorted((_lock(row) for row in left.locks), key=lambda lock: lock[:5]),
            left.lock_count,
            conflict,
            winner,
        )

    def table_commits(self, name: TableName, after: int, limit: int, *, aborted: bool = False) -> list[TableCommit]:
        """Return the commits of a table with write ids above ``after`` that are on record, the latest first.

        ``aborted``: include aborted transactions that had such a write id.
        """
        return [
            TableCommit(*commit[:7], sorted(map(history_rules.operation_name, commit.operations)), *commit[8:])
            for commit in history_store.select_table_commits(self.db, name, after, limit, aborted=aborted)
        ]

    def note_rows(self, txn_id: int, rows: Sequence[tuple[TableName, int, int]]) -> None:
        """Record the writer's counts of rows that an open transaction inserts into tables and deletes from them.

        Earlier counts are replaced, so that a repetition changes nothing. The record is as durable as the commit that
        follows. Raises: InvalidRequestError.
        """
        if len(rows) > MOST_TABLES:
            raise InvalidRequestError(f"The rows of {len(rows)} tables are too many: at most of {MOST_TABLES}")
        for name, inserted, deleted in rows:
            if min(inserted, deleted) < 0:
                raise InvalidRequestError(f"{name} cannot get {inserted} rows and lose {deleted}")
        with self.db.begin(durable=False) as pg:
            history_store.update_written_rows(pg, txn_id, rows)

    def tell(self, errors: Sequence[object]) -> None:
        """Append the outcome of the transaction to each error that names an ended transaction.

        If the database is unavailable, the errors stay as they are.
        """
        ended = [error for error in errors if isinstance(error, EndedError) and error.txn_id is not None]
        if not ended:
            return
        try:
            evidence = history_store.select_evidence(self.db, history_rules.named(error.txn_id for error in ended))
        except MetastoreError:
            return
        for error in ended:
            if error.txn_id in evidence:
                error.args = (history_rules.appended(str(error), history_rules.outcome(evidence[error.txn_id])),)

    def owners(self, lock_ids: Collection[int]) -> dict[int, int]:
        """Return the transactions that were aborted lately with these locks, by lock.

        The answer is empty if the database is unavailable.
        """
        try:
            return history_store.select_lock_owners(self.db, lock_ids)
        except MetastoreError:
            return {}

    def _expires_in(self, record: Record | None, now: datetime) -> timedelta | None:
        if record is None or record.state is not TxnState.OPEN:
            return None
        timeout = self.settings.repl_timeout if record.type is TxnType.REPL_CREATED else self.settings.timeout
        return record.last_heartbeat_at + timeout - now


def _write(row: list[Any]) -> Write:
    catalog, db, table, partition, letter, write_id = row
    return Write(TableName(catalog, db, table), partition, history_rules.operation_name(letter), write_id)


def _lock(row: list[Any]) -> HeldLock:
    ext_id, catalog, db, table, partition, kind, state, requested_at, acquired_at = row
    return HeldLock(
        ext_id,
        TableName(catalog, db, table),
        partition,
        kind,
        state,
        datetime.fromisoformat(requested_at),
        datetime.fromisoformat(acquired_at) if acquired_at else None,
    )
