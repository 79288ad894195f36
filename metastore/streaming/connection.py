"""Streaming connections: rows into a transactional table, one small transaction after the other, without Spark.

    with connect("web.clicks", uri="thrift://metastore:9083", transactions_per_batch=100) as connection:
        for records in source:
            with connection.transaction():
                connection.write(records)

Like Hive's streaming API, version 2. Rule: a ``write`` takes all of its records or none. Rows become visible when
``commit_transaction`` has returned, and never otherwise: files appear under the write ids of open transactions, which
no reader reads, so a process that dies leaves nothing visible.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, TypeAlias

import pyarrow as pa

from metastore.acid.bucket import MAX_WRITER_ID
from metastore.client import AnswerLostError, DomainClient, MetastoreClient, TxnManager
from metastore.client.lock_manager import LockWait
from metastore.errors import InvalidInputError, InvalidOperationError
from metastore.files import Files
from metastore.roots import local_path
from metastore.streaming.batch import Batch, default_agent
from metastore.streaming.columns import Column
from metastore.streaming.delta import DeltaFiles, RowFile
from metastore.streaming.event_file import InsertFile
from metastore.streaming.orc_segments import COMPRESSIONS
from metastore.streaming.partitions import Partitions
from metastore.streaming.plain_file import PlainFile
from metastore.streaming.records import Delimited, Json, RecordFormat, from_arrow, from_mappings, lines
from metastore.streaming.routing import partition_values, routed
from metastore.streaming.table import StreamTable, connected

Records: TypeAlias = bytes | str | Mapping[str, Any] | Sequence[Any]
"""A block of text with a record on each line, a mapping, or several texts or mappings; or an Arrow table or batch."""

_FLUSHERS = 8


class State(StrEnum):
    """The states of a connection."""

    IDLE = "idle"
    OPEN = "in a transaction"
    FAILED = "in a transaction that failed and must be aborted"
    CLOSED = "closed"


@dataclass
class Counts:
    """The amounts that went through a connection."""

    records: int = 0
    committed_records: int = 0
    committed: int = 0
    aborted: int = 0


def connect(
    table: str,
    *,
    uri: str | None = None,
    client: MetastoreClient | None = None,
    partition: Mapping[str, Any] | None = None,
    records: RecordFormat | None = None,
    transactions_per_batch: int = 1,
    compression: str = "snappy",
    agent: str | None = None,
    wait: LockWait | None = None,
    files: Files | None = None,
) -> "StreamingConnection":
    """Connect to ``db.table``.

    ``partition``: values of all partition keys, for rows without them; else every row names its partition.
    ``records``: the format of texts; Delimited() by default. ``transactions_per_batch``: the number of transactions
    that share their files; more than one needs a full ACID table, on a file system that can append (a disk, not an
    object store).
    Raises: InvalidOperationError, NoSuchObjectError, MetastoreUnreachableError.
    """
    if transactions_per_batch < 1:
        raise InvalidInputError("transactions_per_batch is at least 1")
    if compression not in COMPRESSIONS:
        raise InvalidInputError(
            f"compression is one of {', '.join(COMPRESSIONS)}, which every Hive reads; not {compression}"
        )
    with connected(table, uri, client) as (own, described):
        _require_shareable(described, transactions_per_batch)
        return StreamingConnection(
            own,
            described,
            static=_static(described, partition),
            records=records or Delimited(),
            batch_size=transactions_per_batch,
            compression=compression,
            agent=agent or default_agent(),
            wait=wait,
            files=files or Files(),
        )


class StreamingConnection:
    """A stream of transactions. ``write`` may be called by several threads; begin, commit and abort by one."""

    def __init__(
        self,
        client: DomainClient,
        table: StreamTable,
        *,
        static: Mapping[str, pa.Scalar],
        records: RecordFormat,
        batch_size: int,
        compression: str,
        agent: str,
        wait: LockWait | None,
        files: Files,
    ) -> None:
        self.table = table
        self.counts = Counts()
        self._client = client
        self._manager = TxnManager(client, wait=wait)
        self._static = tuple(
            partition_values(key, [static[key.name].as_py()])[0] for key in table.partition_keys if static
        )
        self._keys = static
        self._format = records
        self._batch_size = batch_size
        self._compression = compression
        self._agent = agent
        self._files = files
        self._partitions = Partitions(client, table)
        self._columns: tuple[Column, ...] = table.columns if static else (*table.columns, *table.partition_keys)
        self._batch: Batch | None = None
        self._delta: DeltaFiles[RowFile] | None = None
        self._state = State.IDLE
        self._gate = threading.Condition()
        self._writing = 0
        self._in_transaction = 0
        self._free_writers: list[int] = []
        self._writers = 0
        self._touched: set[str] = set()
        if self._static:
            self._partitions.place(self._static)

    def __enter__(self) -> Self:
        """Return the connection, which is open already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    @property
    def state(self) -> State:
        """The state, which decides the next allowed call."""
        return self._state

    @property
    def txn_id(self) -> int:
        """The id of the present transaction; 0 if there is none."""
        return self._batch.txn_id if self._batch and self._state in {State.OPEN, State.FAILED} else 0

    @property
    def write_id(self) -> int:
        """The present transaction's write id; 0 if there is none."""
        return self._batch.write_id if self._batch and self.txn_id else 0

    @property
    def remaining(self) -> int:
        """The number of transactions that the present batch has left."""
        return self._batch.remaining if self._batch else 0

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Run the block in a transaction: committed at its end, aborted when it raises."""
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            if self._state in {State.OPEN, State.FAILED}:
                self.abort_transaction()
            raise
        self.commit_transaction()

    def begin_transaction(self) -> None:
        """Begin a transaction, the next of the batch or the first of a new batch. Wait for the table's lock.

        Raises: LockNotAcquiredError, LostError (the batch was timed out: the next call opens a new batch).
        """
        self._require(State.IDLE)
        try:
            if self._batch is None or self._batch.is_used_up:
                self._end_batch()
                self._batch = self._open_batch()
                self._delta = DeltaFiles(
                    self._files,
                    self.table,
                    self._batch.min_write_id,
                    self._batch.max_write_id,
                    PlainFile if self.table.is_insert_only else InsertFile,
                    compression=self._compression,
                    may_publish=self._batch.require_open,
                )
            self._batch.begin()
        except BaseException:
            self._end_batch()
            raise
        self._in_transaction = 0
        self._touched.clear()
        self._state = State.OPEN

    def write(self, records: "Records | pa.Table | pa.RecordBatch") -> int:
        """Write records: a block of text with a record on each line, texts, mappings, or Arrow data.

        Return their number.
        Raises: RecordError, with record and field, if any does not fit or breaks a constraint: none of them is taken
        then, and the transaction continues. After any other error it must be aborted.
        """
        table = self._converted(records)
        self.table.rules.require_kept(table, self._keys)
        with self._admitted() as (batch, delta):
            try:
                for part in routed(self.table, table, self._static):
                    place = self._partitions.place(part.partition)
                    with self._writer_for(part.bucket) as writer:
                        file = delta.file(place.location, writer)
                        with file.busy:
                            file.insert(batch.write_id, part.rows)
                    self._touched.add(place.name)
            except BaseException:
                self._state = State.FAILED
                raise
            with self._gate:
                self._in_transaction += table.num_rows
                self.counts.records += table.num_rows
        return int(table.num_rows)

    def commit_transaction(self) -> None:
        """Commit: when this returns, the rows are on disk, and every new reader sees them.

        Raises: TxnAbortedError, LostError (timed out), MetastoreUnreachableError; AnswerLostError if it is unknown
        whether it was committed.
        """
        batch, delta = self._alone(State.OPEN)
        try:
            batch.require_open()
            with ThreadPoolExecutor(_FLUSHERS) as pool:
                delta.flush(pool)
            if batch.is_used_up:
                delta.close()
            dynamic = self.table.partition_keys and not self._static
            batch.commit(sorted(self._touched) if dynamic else None)
        except AnswerLostError:  # The transaction may be committed, so its files must stay.
            self._state = State.IDLE
            self._end_batch()
            raise
        except BaseException:
            self._abort(batch, delta)
            raise
        self._state = State.IDLE
        self.counts.committed += 1
        self.counts.committed_records += self._in_transaction
        if batch.is_used_up:
            self._end_batch()

    def abort_transaction(self) -> None:
        """Abort: rows written since ``begin_transaction`` are never visible."""
        self._abort(*self._alone(State.OPEN, State.FAILED))

    def close(self) -> None:
        """Abort an open transaction, end the batch, close the connection; closing twice is fine."""
        if self._state is State.CLOSED:
            return
        if self._state is not State.IDLE:
            self.abort_transaction()
        try:
            self._end_batch()
        finally:
            self._state = State.CLOSED
            self._client.close()

    def _open_batch(self) -> Batch:
        is_dynamic = bool(self.table.partition_keys and not self._static)
        return Batch(
            self._client,
            self._manager,
            self.table,
            self._batch_size,
            agent=self._agent,
            is_dynamic=is_dynamic,
            partition=self._partitions.name(self._static) if self._static else "",
        )

    def _abort(self, batch: Batch, delta: DeltaFiles[RowFile]) -> None:
        self._state = State.IDLE
        if not batch.abort():  # The transaction may be committed, so its files must stay.
            self._end_batch()
            return
        self.counts.aborted += 1
        if not delta.is_shared:
            delta.remove()
        if not delta.abandon() or batch.is_used_up:
            self._end_batch()

    def _end_batch(self) -> None:
        batch, delta, self._batch, self._delta = self._batch, self._delta, None, None
        if delta is not None:
            with suppress(OSError, pa.ArrowException):  # A file that is not closed keeps its side file.
                delta.close()
        if batch is not None:
            batch.close()

    def _converted(self, records: Any) -> pa.Table:
        if isinstance(records, pa.Table | pa.RecordBatch):
            return from_arrow(records, self._columns)
        if isinstance(records, str | bytes):
            return self._format.read(lines(_encoded(records)), self._columns)
        rows: list[Any] = [records] if isinstance(records, Mapping) else list(records)
        if all(isinstance(record, Mapping) for record in rows):
            return from_mappings(rows, self._columns)
        if not all(isinstance(record, str | bytes) for record in rows):
            raise InvalidInputError("Records are texts, mappings, or Arrow data; not a mixture")
        return self._format.read([_encoded(record) for record in rows], self._columns)

    @contextmanager
    def _admitted(self) -> Iterator[tuple[Batch, DeltaFiles[RowFile]]]:
        """Delay the end of the transaction while a thread writes into it."""
        with self._gate:
            self._require(State.OPEN)
            batch, delta = self._batch, self._delta
            assert batch is not None  # noqa: S101 - the state says so
            assert delta is not None  # noqa: S101
            batch.check()
            self._writing += 1
        try:
            yield batch, delta
        finally:
            with self._gate:
                self._writing -= 1
                self._gate.notify_all()

    def _alone(self, *states: State) -> tuple[Batch, DeltaFiles[RowFile]]:
        """Wait until no thread writes."""
        with self._gate:
            self._gate.wait_for(lambda: not self._writing)
            self._require(*states)
            assert self._batch is not None  # noqa: S101 - the state says so
            assert self._delta is not None  # noqa: S101
            return self._batch, self._delta

    @contextmanager
    def _writer_for(self, bucket: int | None) -> Iterator[int]:
        """Yield N of the file to write: the row's bucket; without buckets, a number that no other thread has now."""
        if bucket is not None:
            yield bucket
            return
        with self._gate:
            if not self._free_writers:
                if self._writers > MAX_WRITER_ID:
                    raise InvalidOperationError("More than 4096 threads write at the same time")
                self._free_writers.append(self._writers)
                self._writers += 1
            writer = self._free_writers.pop()
        try:
            yield writer
        finally:
            with self._gate:
                self._free_writers.append(writer)

    def _require(self, *states: State) -> None:
        if self._state not in states:
            raise InvalidOperationError(f"The connection to {self.table.name} is {self._state}")


def _require_shareable(table: StreamTable, transactions_per_batch: int) -> None:
    if transactions_per_batch > 1 and table.is_insert_only:
        raise InvalidOperationError(
            f"{table.name} is insert-only, and its rows do not tell which transaction wrote "
            "them: use one transaction per batch."
        )
    if transactions_per_batch > 1 and local_path(table.location) is None:
        raise InvalidOperationError(
            f"{table.name} lies in {table.location}, where files cannot be appended to: use one transaction per batch."
        )


def _encoded(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _static(table: StreamTable, partition: Mapping[str, Any] | None) -> dict[str, pa.Scalar]:
    if partition is None:
        return {}
    values = {name.lower(): value for name, value in partition.items()}
    keys = [key.name for key in table.partition_keys]
    if sorted(values) != sorted(keys):
        raise InvalidInputError(
            f"{table.name} is partitioned by {', '.join(keys) or 'nothing'}; a static partition "
            "names all keys and nothing else"
        )
    row = from_mappings([values], table.partition_keys)
    return {name: row.column(name)[0] for name in keys}


__all__ = ["Counts", "Delimited", "Json", "State", "StreamingConnection", "connect"]
