"""Allocation of write ids, and the lists of those that readers may see: one RPC's work each."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from threading import Event, Lock
from typing import NamedTuple

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList, listed_ids
from metastore.backoff import doubling
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.compaction.queue.store import opens as opens_store
from metastore.compaction.queue.store import requests as compaction_queue
from metastore.db.engine import Database
from metastore.errors import InvalidRequestError, MetastoreError, UnavailableError
from metastore.ids import TableName, full_table_name
from metastore.partition_names import canonical
from metastore.txns.core import store as txn_store
from metastore.txns.core.rules import LARGEST_ID, REASONS, AbortCode, Component, Operation, reader_snapshot
from metastore.txns.core.store import Opening
from metastore.txns.reading import store as reading_store
from metastore.txns.replication import store as repl_store
from metastore.write_ids import store
from metastore.write_ids.rules import (
    Allocation,
    check_replayed,
    first_refusal,
    plan_allocations,
    uncontended,
    valid_write_ids,
)
from metastore.write_ids.time_travel import rules as past_rules
from metastore.write_ids.time_travel import store as past_store

LONGEST_REMEMBERED = 200_000
"""Ids of a transaction list that is kept parsed; its text may be short and stand for many."""
MOST_OPENED = 10_000
"""The most tables whose opens are counted between two looks; others are not counted until then."""
_FIRST_PAUSE, _LONGEST_PAUSE, _PAUSES = timedelta(milliseconds=5), timedelta(milliseconds=500), 10


class Reading(NamedTuple):
    """The tables of a read, and the reader.

    The reader is given by its transaction list, or by a write id of the first table that it owns. Without both, the
    reader starts now.
    """

    names: tuple[str, ...]
    valid_txns: str | None = None
    write_id: int | None = None

    @property
    def starts_now(self) -> bool:
        """True if the reader has no snapshot of its own."""
        return bool(self.names) and self.valid_txns is None and self.write_id is None


class ReplayedAllocation(NamedTuple):
    """Write ids that the source warehouse gave to its transactions: (source transaction, write id), ascending."""

    name: TableName
    policy: str
    owners: tuple[tuple[int, int], ...]


class ReplicatedState(NamedTuple):
    """The write ids of a table as the source warehouse sees them, and the replicating policy."""

    name: TableName
    valid_write_ids: str
    user: str
    host: str
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Opens:
    """Counts of tables' snapshots given to readers, kept in this process until a loop writes them down."""

    _counts: Counter[TableName] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def add(self, names: Iterable[TableName]) -> None:
        """Count an open of each table."""
        with self._lock:
            for name in names:
                if name in self._counts or len(self._counts) < MOST_OPENED:
                    self._counts[name] += 1

    def taken(self) -> dict[TableName, int]:
        """Return the counts since the last call, and reset them."""
        with self._lock:
            counts = dict(self._counts)
            self._counts.clear()
        return counts


@dataclass(frozen=True)
class WriteIdService:
    """The write ids of tables."""

    db: Database
    opens: Opens = field(default_factory=Opens)

    def allocate_table_write_ids(self, requests: Sequence[Allocation]) -> list[dict[int, int] | Exception]:
        """Give transactions their write ids: {transaction: write id}, ascending.

        Serialises on: the tables. Retry: idempotent, except with ``reallocate``, which burns ids.
        Answers: TxnAbortedError, NoSuchTxnError, InvalidRequestError (read-only), then nothing is allocated.
        """
        wanted = uncontended(requests)
        ids = store.allocate_uncontended(self.db, wanted) if wanted else None
        if ids is not None:
            next_ids = iter(ids)
            return [dict(zip(sorted(request.txn_ids), next_ids, strict=False)) for request in requests]
        names = {request.name for request in requests}
        txn_ids = {txn_id for request in requests for txn_id in request.txn_ids}
        with self.db.begin() as pg:
            facts = store.lock_for_allocation(pg, names, txn_ids)
            plan = plan_allocations(requests, facts.txns, facts.owned, facts.next_write_ids)
            store.finish_allocations(pg, plan)
        return plan.answers

    def allocate_replayed(self, request: ReplayedAllocation) -> dict[int, int]:
        """Give the targets of replicated transactions exactly the source's write ids.

        Empty when the targets are closed already. Serialises on: the policy, the table. Retry: idempotent.
        Raises: InvalidRequestError, TxnAbortedError, NoSuchTxnError.
        """
        check_replayed(request.owners)
        with self.db.begin() as pg:
            targets = repl_store.lock_targets(pg, request.policy, [source for source, _ in request.owners])
            if len(targets) != len(request.owners):
                return {}
            facts = store.lock_for_allocation(pg, [request.name], targets)
            refusal = first_refusal(targets, facts.txns)
            if refusal is not None:
                raise refusal
            wanted = dict(zip(targets, (write_id for _, write_id in request.owners), strict=True))
            owned = {txn_id: write_id for (txn_id, _), write_id in facts.owned.items()}
            if owned != wanted:
                first = min(wanted.values())
                store.replace_write_ids(
                    pg, request.name, list(wanted.items()), forget=first != facts.next_write_ids[request.name]
                )
                store.update_next_write_id(pg, request.name, first + len(wanted), first - 1)
        return wanted

    def get_valid_write_ids(self, requests: Sequence[Reading]) -> list[list[ValidWriteIdList] | MetastoreError]:
        """Return the tables' write-id lists for each reader, in the order and spelling of its ``names``.

        Gives for a member: InvalidRequestError for a write id without an owner, InvalidInputError.
        """
        self.opens.add(full_table_name(name) for request in requests for name in request.names)
        now = [request for request in requests if request.starts_now]
        if len(now) == len(requests):
            return self._starting_now(now)
        later = iter(self._starting_now(now)) if now else iter(())
        earlier = iter(self._reading([request for request in requests if not request.starts_now]))
        return [next(later if request.starts_now else earlier) for request in requests]

    def read_snapshot(
        self, txn_id: int, names: Sequence[str], valid_txns: str | None
    ) -> tuple[ValidTxnList, list[ValidWriteIdList]]:
        """Return the lists by which a transaction reads, and record its tables.

        The transaction delays the cleaning of these tables only.
        ``names``: the tables, including all that it has read so far; ``valid_txns``: its snapshot, if it has one.
        Serialises on: the transaction's row. Retry: idempotent.
        Raises: TxnAbortedError, NoSuchTxnError, InvalidInputError; MetaError if a table was cleaned without waiting for
        it.
        """
        tables = {full_table_name(name) for name in names}
        snapshot = reading_store.register(self.db, txn_id, tables, names_all=True)
        txns = reader_snapshot(snapshot, txn_id) if valid_txns is None else ValidTxnList.parse(valid_txns)
        known = store.select_tables(self.db, tables, txns) if tables else {}
        self.opens.add(tables)
        return txns, [valid_write_ids(name, known[full_table_name(name)], txns) for name in names]

    def add_write_ids_to_min_history(self, txn_id: int, tables: Collection[TableName]) -> None:
        """Record the tables that a transaction reads: it delays the cleaning of these only. Retry: idempotent.

        Serialises on: the transaction's row. Raises: TxnAbortedError, NoSuchTxnError, MetaError if a table was cleaned
        without waiting for it.
        """
        reading_store.register(self.db, txn_id, tables, names_all=False)

    def note_opens(self) -> None:
        """Store the counts of opens since the last call; counts that cannot be stored are lost.

        Serialises on: the tables' rows, in their order. Retry: no open is counted twice.
        """
        counts = self.opens.taken()
        if counts:
            opens_store.upsert_opens(self.db, counts)
            opens_store.delete_forgotten(self.db)

    def _starting_now(self, requests: Sequence[Reading]) -> list[list[ValidWriteIdList] | MetastoreError]:
        """Answer readers that start now: one snapshot and the tables as of the same instant, in one statement."""
        tables = [[full_table_name(name) for name in request.names] for request in requests]
        snapshot, known = store.select_tables_now(self.db, {table for names in tables for table in names})
        txns = reader_snapshot(snapshot)
        return [
            [valid_write_ids(name, known[table], txns) for name, table in zip(request.names, names, strict=True)]
            for request, names in zip(requests, tables, strict=True)
        ]

    def _reading(self, requests: Sequence[Reading]) -> list[list[ValidWriteIdList] | MetastoreError]:
        """Answer readers that have a snapshot: the tables' state, in one statement."""
        readers = self._readers(requests)
        tables = [[full_table_name(name) for name in request.names] for request in requests]
        wanted = [
            (table, txns)
            for names, txns in zip(tables, readers, strict=True)
            if isinstance(txns, ValidTxnList)
            for table in names
        ]
        known = store.select_tables_of_readers(self.db, wanted) if wanted else {}
        return [
            txns
            if isinstance(txns, MetastoreError)
            else [
                valid_write_ids(name, known[txns.high_watermark, table], txns)
                for name, table in zip(request.names, names, strict=True)
            ]
            for request, names, txns in zip(requests, tables, readers, strict=True)
        ]

    def valid_write_ids_at(self, name: TableName, at: datetime) -> ValidWriteIdList:
        """Return the write ids committed to a table at an instant, to the millisecond; wait for commits that may count.

        Raises: InvalidOperationError for an instant that is not on record or still to come, UnavailableError.
        """
        pause = Event()
        for delay in doubling(_FIRST_PAUSE, _LONGEST_PAUSE, _PAUSES):
            try:
                return self._write_ids_at(name, at)
            except UnavailableError:
                pause.wait(delay.total_seconds())
        return self._write_ids_at(name, at)

    def _write_ids_at(self, name: TableName, at: datetime) -> ValidWriteIdList:
        with self.db.begin() as pg:
            past_rules.require_settled(at, past_store.select_horizon(pg))
            past = past_store.select_past(pg, name, at)
        return past_rules.write_ids_at(name, past, at)

    def get_max_allocated_table_write_id(self, name: TableName) -> int:
        """Return the highest write id allocated for the table, 0 if none."""
        return store.select_next_write_id(self.db, name) - 1

    def seed_write_id(self, name: TableName, write_id: int) -> None:
        """Let the ids of a table that has none begin behind this id. Raises: InvalidRequestError."""
        if not 0 <= write_id <= LARGEST_ID:
            raise InvalidRequestError(f"A table's write ids cannot begin behind {write_id}")
        with self.db.begin() as pg:
            if not store.insert_next_write_id(pg, name, write_id + 1, exactly=False):
                raise InvalidRequestError(
                    f"The write ids of {name} have begun already: they cannot be seeded with {write_id}"
                )

    def repl_tbl_writeid_state(self, state: ReplicatedState) -> None:
        """Take over the aborted write ids of a replicated table; do nothing if the table has any write id (WID-13).

        The aborted ids get transactions of their own, which stay until a major compaction has removed their rows.
        Raises: InvalidInputError.
        """
        known = ValidWriteIdList.parse(state.valid_write_ids)
        with self.db.begin() as pg:
            begun = not store.insert_next_write_id(pg, state.name, known.high_watermark + 1, exactly=True)
            if begun or not known.aborted:
                return
            write_ids = sorted(known.aborted)
            first = txn_store.insert_txns_within(pg, Opening(len(write_ids), state.user, state.host, "Unknown"))
            owners = list(enumerate(write_ids, first))
            store.replace_write_ids(pg, state.name, owners, forget=False)
            partitions = [canonical(name) for name in state.partitions] or [""]
            txn_store.insert_components(
                pg,
                [
                    Component(txn_id, state.name, partition, Operation.INSERT, write_id)
                    for txn_id, write_id in owners
                    for partition in partitions
                ],
            )
            txn_store.abort(
                pg,
                [
                    (txn_id, AbortCode.REPL_WRITE_ID, f"aborted {REASONS[AbortCode.REPL_WRITE_ID]}")
                    for txn_id, _ in owners
                ],
            )
            for partition in partitions:
                compaction_queue.insert_request(
                    pg, compaction_queue.NewRequest(Entity(state.name, partition), CompactionType.MAJOR)
                )

    def _readers(self, requests: Sequence[Reading]) -> list[ValidTxnList | MetastoreError]:
        """Return the transaction list of each reader."""
        readers: list[ValidTxnList | MetastoreError] = []
        for request in requests:
            try:
                readers.append(self._reader(request))
            except MetastoreError as error:
                readers.append(error)
        return readers

    def _reader(self, request: Reading) -> ValidTxnList:
        if request.valid_txns is not None:
            return _parsed(request.valid_txns) if request.valid_txns else ValidTxnList.everything()
        if request.write_id is None or not request.names:
            return ValidTxnList.everything()
        owner, snapshot = store.select_owner_and_snapshot(self.db, full_table_name(request.names[0]), request.write_id)
        if owner is None:
            raise InvalidRequestError(f"invalid write id {request.write_id} for table {request.names[0]}")
        return reader_snapshot(snapshot, owner)


@lru_cache(maxsize=16)
def _remembered(valid_txns: str) -> ValidTxnList:
    return ValidTxnList.parse(valid_txns)


def _parsed(valid_txns: str) -> ValidTxnList:
    """Parse a reader's list.

    The same list comes again with each table that the reader opens, so lists of a usual length are cached.
    """
    return _remembered(valid_txns) if listed_ids(valid_txns) <= LONGEST_REMEMBERED else ValidTxnList.parse(valid_txns)
