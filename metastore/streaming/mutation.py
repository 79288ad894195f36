"""Changes of rows by their ids, without Spark: inserts, updates and deletes as sorted streams of records.

    with mutate("sales.orders", uri="thrift://metastore:9083") as mutation:     # opens, locks, allocates
        worker = mutation.worker()
        worker.delete([{"ROW__ID": row_id, "day": "2024-05-01"} for row_id in sorted(gone)])
        worker.update([{"ROW__ID": row_id, "id": 7, "state": "paid", "day": "2024-05-01"}])
        worker.insert([{"id": 8, "state": "new", "day": "2024-05-02"}])          # leaving the block commits

Like Hive's mutation API: a coordinator (``Mutation``) has the transaction, workers write. Workers may be other
processes: they are made from the coordinator's ``ticket``, which can be pickled, and hand back what ``close`` returns.
Rules. Each worker writes directories of its own (its number is their statement id), so workers never meet in a file.
Changes of one partition and bucket come in ascending order of their ROW__IDs, since readers merge by that order; what
comes out of order is refused. A call takes all of its records or none.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa

from metastore.acid.bucket import MAX_STATEMENT_ID, decode
from metastore.acid.events import ROW_ID_COLUMN
from metastore.acid.names import DeltaName, is_hidden, parse_directory
from metastore.acid.orc_footer import RowKey
from metastore.client import AnswerLostError, DomainClient, MetastoreClient, TxnManager
from metastore.client.fence import Fence
from metastore.client.lock_manager import LockWait
from metastore.client.lock_plan import Kind, Output, Target, statement_locks
from metastore.errors import InvalidInputError, InvalidOperationError, MetastoreError
from metastore.files import Files
from metastore.locks.rules import Operation
from metastore.streaming.batch import default_agent
from metastore.streaming.columns import Column
from metastore.streaming.delta import DeltaFiles
from metastore.streaming.event_file import DeleteFile, InsertFile
from metastore.streaming.partitions import Partitions
from metastore.streaming.records import RecordError, from_arrow, from_mappings
from metastore.streaming.routing import by_partition, routed
from metastore.streaming.table import StreamTable, connected

"""The column of records that names a row: write id, bucket number and row id, as Hive and Spark's session show it."""

_ID_TYPES = (pa.int64(), pa.int32(), pa.int64())


@dataclass(frozen=True)
class Ticket:
    """What a worker needs to know. Can be pickled."""

    table: StreamTable
    uri: str
    txn_id: int
    write_id: int
    compression: str


@dataclass(frozen=True)
class Written:
    """What a worker wrote. Can be pickled. Names are of partitions; "" is an unpartitioned table."""

    inserted: int = 0
    deleted: int = 0
    inserted_into: frozenset[str] = frozenset()
    deleted_from: frozenset[str] = frozenset()
    workers: frozenset[int] = frozenset()


class _Change(NamedTuple):
    """Delete events for one file; ``at``: places of the records, ``rows``: new versions of the rows."""

    location: str
    partition: str
    writer: int
    at: list[int]


def mutate(
    table: str,
    *,
    uri: str | None = None,
    client: MetastoreClient | None = None,
    compression: str = "snappy",
    agent: str | None = None,
    wait: LockWait | None = None,
) -> "Mutation":
    """Begin a transaction that changes rows of ``db.table``; waits for its lock.

    Row ids must have been read under this transaction's lock (``Mutation.snapshot``): an id that was read before may
    be of a row that somebody has changed since.
    Raises: InvalidOperationError, NoSuchObjectError, LockNotAcquiredError, MetastoreUnreachableError.
    """
    with connected(table, uri, client) as (own, described):
        if described.is_insert_only:
            raise InvalidOperationError(f"{described.name} is insert-only: its rows have no ids to change them by.")
        return Mutation(own, described, compression=compression, agent=agent or default_agent(), wait=wait)


class Mutation:
    """The coordinator: one transaction, its lock and its write id."""

    def __init__(
        self, client: DomainClient, table: StreamTable, *, compression: str, agent: str, wait: LockWait | None
    ) -> None:
        self.table = table
        self._client = client
        self._workers: list[MutationWorker] = []
        manager = TxnManager(client, wait=wait)
        self._txn = manager.open(agent=agent)
        try:
            target = Target(table.name.db, table.name.table, is_dynamic=bool(table.partition_keys))
            self._txn.lock(statement_locks(outputs=[Output(target, Kind.UPDATE)], modes=manager.modes))
            self.snapshot = self._txn.valid_write_ids([str(table.name)], no_others=True)[str(table.name)]
            """What the ids of rows to be changed must be read from."""

            self.ticket = Ticket(
                table, client.uri, self._txn.id, self._txn.write_id(table.name.db, table.name.table), compression
            )
        except BaseException:
            self._txn.abort_quietly()
            raise

    def __enter__(self) -> Self:
        """Nothing to do: the transaction is open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit what the workers of this process wrote, or abort."""
        if error is None:
            self.commit()
        else:
            self.abort()

    def worker(self, number: int | None = None) -> "MutationWorker":
        """A worker in this process; each gets a number that no other worker of the transaction may have."""
        worker = MutationWorker(self.ticket, len(self._workers) if number is None else number, client=self._client)
        self._workers.append(worker)
        return worker

    def commit(self, written: Iterable[Written] = ()) -> Written:
        """Commit; ``written``: what workers elsewhere handed back. Returns what was written in all.

        Raises: InvalidOperationError (a worker has written and is not in ``written``), TxnAbortedError, LostError,
        MetastoreUnreachableError: aborted; AnswerLostError (it may have been done).
        """
        try:
            elsewhere = list(written)
            total = _total([*(worker.close() for worker in self._workers), *elsewhere])
            if elsewhere:
                self._require_no_others(total.workers)
            self._txn.check()
            if self.table.partition_keys:
                name = self.table.name
                only_inserted = total.inserted_into - total.deleted_from
                self._txn.add_dynamic_partitions(name.db, name.table, sorted(total.deleted_from), Operation.UPDATE)
                if only_inserted:
                    self._txn.add_dynamic_partitions(name.db, name.table, sorted(only_inserted), Operation.INSERT)
            self._txn.commit()
        except AnswerLostError:  # it may have been committed: what was written must stay
            self._client.close()
            raise
        except BaseException:
            self.abort()
            raise
        self._client.close()
        return total

    def _require_no_others(self, workers: frozenset[int]) -> None:
        """Files of a worker that died would be seen by the commit, half of them or all: then nothing is committed."""
        files, write_id = Files(), self.ticket.write_id
        places = [self.table.location]
        if self.table.partition_keys:
            partitions = self._client.get_partitions(self.table.name.db, self.table.name.table, -1)
            places = [str(partition.sd.location) for partition in partitions]
        for place in places:
            for child in files.children(place):
                name = None if is_hidden(child) else parse_directory(child)
                if (
                    isinstance(name, DeltaName)
                    and name.min_write_id == name.max_write_id == write_id
                    and name.statement_id not in workers
                ):
                    raise InvalidOperationError(
                        f"{place}/{child} was written by worker {name.statement_id}, which has not finished: abort() a "
                        "worker that is given up"
                    )

    def abort(self) -> None:
        """Abort, and remove what workers of this process wrote; others' is removed by the Cleaner."""
        if self._txn.abort_quietly():
            for worker in self._workers:
                worker.abort()
        self._client.close()


class MutationWorker:
    """Writes changes. For one thread; several workers may work at the same time."""

    def __init__(
        self, ticket: Ticket, number: int = 0, *, client: DomainClient | None = None, files: Files | None = None
    ) -> None:
        """``number``: from 0 to 4095, of its own in the transaction; each new attempt gets a new number."""
        if not 0 <= number <= MAX_STATEMENT_ID:
            raise InvalidInputError(f"A worker's number is from 0 to {MAX_STATEMENT_ID}, not {number}")
        self._table = table = ticket.table
        self._write_id = ticket.write_id
        self._number = number
        own_client = client or DomainClient(ticket.uri)
        self._own_client = None if client else own_client
        self._partitions = Partitions(own_client, table)
        self._fence = Fence(own_client, ticket.txn_id)
        options: dict[str, Any] = {
            "compression": ticket.compression,
            "statement": number,
            "may_publish": self._fence.require_open,
        }
        ids = (ticket.write_id, ticket.write_id)
        self._inserts = DeltaFiles(files or Files(), table, *ids, InsertFile, **options)
        self._deletes = DeltaFiles(files or Files(), table, *ids, DeleteFile, **options)
        self._last: dict[tuple[str, int], RowKey] = {}
        self._inserted = self._deleted = 0
        self._inserted_into: set[str] = set()
        self._deleted_from: set[str] = set()
        self._one_call = threading.Lock()

    def insert(self, records: Any) -> int:
        """Insert rows: mappings or Arrow data with columns and partition keys. Raises: RecordError."""
        with self._one_call:
            rows = _converted(records, (*self._table.columns, *self._table.partition_keys))
            self._table.rules.require_kept(rows, {})
            for part in routed(self._table, rows):
                place = self._partitions.place(part.partition)
                self._insert(place.name, place.location, part.bucket or 0, part.rows)
            return int(rows.num_rows)

    def delete(self, records: Any) -> int:
        """Delete rows: records with ``ROW__ID`` and the partition keys. Raises: RecordError."""
        with self._one_call:
            rows, ids = _with_ids(records, self._table.partition_keys)
            self._delete(self._changes(rows, ids), ids)
            return len(ids)

    def update(self, records: Any) -> int:
        """Give rows new versions: records with ``ROW__ID``, all columns, and the keys of the partition they are in.

        Raises: RecordError.
        """
        with self._one_call:
            columns = (replace(column, default=None) for column in (*self._table.columns, *self._table.partition_keys))
            rows, ids = _with_ids(records, tuple(columns))
            self._table.rules.require_kept(rows, {})
            changes = self._changes(rows, ids)
            self._delete(changes, ids)
            for change in changes:
                for part in routed(self._table, rows.take(pa.array(change.at, pa.int64()))):
                    writer = change.writer if part.bucket is None else part.bucket
                    self._insert(change.partition, change.location, writer, part.rows)
            return len(ids)

    def close(self) -> Written:
        """Finish the files, safe on disk; returns what the coordinator's ``commit`` wants to know.

        Raises: TxnAbortedError, NoSuchTxnError (nobody wants them any more), MetastoreUnreachableError, MetaError.
        """
        self._fence.require_open()
        for files in (self._deletes, self._inserts):
            files.flush_all()
            files.close()
        self._end()
        return Written(
            self._inserted,
            self._deleted,
            frozenset(self._inserted_into),
            frozenset(self._deleted_from),
            frozenset({self._number}),
        )

    def abort(self) -> None:
        """Remove what was written."""
        self._deletes.remove()
        self._inserts.remove()
        self._end()

    def _end(self) -> None:
        if self._own_client is not None:
            with suppress(MetastoreError):
                self._own_client.close()

    def _insert(self, partition: str, location: str, writer: int, rows: pa.StructArray) -> None:
        self._inserts.file(location, writer).insert(self._write_id, rows)
        self._inserted += len(rows)
        self._inserted_into.add(partition)

    def _delete(self, changes: Sequence[_Change], ids: Sequence[RowKey]) -> None:
        for change in changes:
            chosen = [ids[at] for at in change.at]
            parts = zip(*chosen, strict=True)
            columns = [pa.array(values, kind) for values, kind in zip(parts, _ID_TYPES, strict=True)]
            self._deletes.file(change.location, change.writer).delete(self._write_id, columns)
            self._last[change.location, change.writer] = chosen[-1]
            self._deleted += len(chosen)
            self._deleted_from.add(change.partition)

    def _changes(self, rows: pa.Table, ids: Sequence[RowKey]) -> list[_Change]:
        """The records by the file that their delete events go to, their order checked."""
        changes = []
        for values, places in by_partition(self._table, rows) if ids else ():
            place = self._partitions.place(values)
            by_writer: dict[int, list[int]] = {}
            last: dict[int, RowKey] = {}
            for at in range(len(ids)) if places is None else places.to_pylist():
                writer = _writer(at, ids[at])
                before = last.get(writer) or self._last.get((place.location, writer))
                if before is not None and ids[at] <= before:
                    what = "is named twice" if ids[at] == before else f"comes behind {tuple(before)}"
                    raise RecordError(
                        at,
                        ROW_ID_COLUMN,
                        f"row {tuple(ids[at])} {what}; rows of one partition and bucket come "
                        "in ascending order of their ids, each once",
                    )
                last[writer] = ids[at]
                by_writer.setdefault(writer, []).append(at)
            changes += [_Change(place.location, place.name, writer, chosen) for writer, chosen in by_writer.items()]
        return changes


def _converted(records: Any, columns: Sequence[Column]) -> pa.Table:
    if isinstance(records, pa.Table | pa.RecordBatch):
        return from_arrow(records, columns)
    return from_mappings([records] if isinstance(records, Mapping) else list(records), columns)


def _with_ids(records: Any, columns: Sequence[Column]) -> tuple[pa.Table, list[RowKey]]:
    """The records without their ROW__IDs, and these."""
    if isinstance(records, pa.Table | pa.RecordBatch):
        table = records if isinstance(records, pa.Table) else pa.Table.from_batches([records])
        if ROW_ID_COLUMN not in table.column_names:
            raise RecordError(0, ROW_ID_COLUMN, "it is missing")
        ids = table.column(ROW_ID_COLUMN).to_pylist()
        rest = table.drop_columns([ROW_ID_COLUMN])
        if not columns:  # nothing but the ids: a table without columns would forget its length
            return pa.table({}), [_row_key(at, row_id) for at, row_id in enumerate(ids)]
        return from_arrow(rest, columns), [_row_key(at, row_id) for at, row_id in enumerate(ids)]
    rows = [records] if isinstance(records, Mapping) else list(records)
    keys = [_row_key(at, record.get(ROW_ID_COLUMN)) for at, record in enumerate(rows)]
    bare = [{name: value for name, value in record.items() if name != ROW_ID_COLUMN} for record in rows]
    return from_mappings(bare, columns), keys


def _row_key(at: int, value: Any) -> RowKey:
    """Three numbers, or a structure of them."""
    parts = tuple(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(parts, tuple | list) or [type(part) for part in parts] != [int] * 3:
        raise RecordError(at, ROW_ID_COLUMN, f"{value!r} is no row id: it has a write id, a bucket number and a row id")
    return RowKey(*parts)


def _writer(at: int, key: RowKey) -> int:
    try:
        return decode(key.bucket).writer_id
    except InvalidInputError as error:
        raise RecordError(at, ROW_ID_COLUMN, str(error)) from error


def _total(written: Iterable[Written]) -> Written:
    parts = list(written)
    return Written(
        sum(part.inserted for part in parts),
        sum(part.deleted for part in parts),
        frozenset().union(*(part.inserted_into for part in parts)),
        frozenset().union(*(part.deleted_from for part in parts)),
        frozenset().union(*(part.workers for part in parts)),
    )
