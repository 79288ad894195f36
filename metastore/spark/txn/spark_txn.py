"""A metastore transaction from Spark's side: its locks, its snapshot of each table, its numbered statements.

Rules (ACID-25, ACID-26). Locks first, then the snapshot, then the write id. Files are published whole,
deletes before inserts, after the metastore has said once more that the transaction is open (ADR 0036); partitions are
registered and announced; only then may the transaction commit. After an abort the published files are removed where
possible; the others stay invisible.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.names import BaseName, DeltaName, parse_directory, staging_directory
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables.change_feed import between, require_changes, require_ids, require_no_overwrite
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.pruning import Restriction
from metastore.acid_tables.table import AcidTable, TableKind
from metastore.acid_tables.time_travel import AsOf, as_of_write_id
from metastore.client import AnswerLostError, DomainClient, Transaction
from metastore.client.partitions import Locations, partition_places
from metastore.client.scans import snapshot_directories
from metastore.errors import InvalidOperationError, MetastoreError, NoSuchTxnError, TxnAbortedError
from metastore.files import Files, FileSystem
from metastore.ids import TableName
from metastore.locks.rules import Operation
from metastore.spark.read.partition_texts import read_by
from metastore.spark.read.precision import require_exact_moves
from metastore.spark.read.reader import read_changes, read_snapshot
from metastore.spark.tables.spark_types import row_type
from metastore.spark.txn.joined import JoinedTransaction
from metastore.spark.write.acid_writer import Deletes, LeftoverError, WrittenDirectory, write_acid
from metastore.spark.write.events import StatementId
from metastore.spark.write.in_place import Below
from metastore.spark.write.plain_writer import write_plain


@dataclass(frozen=True)
class View:
    """A table in one snapshot."""

    table: AcidTable
    write_ids: ValidWriteIdList
    directories: tuple[Directory, ...]

    def frame(self, spark: SparkSession, *, row_ids: bool = False) -> DataFrame:
        """The table's rows in the snapshot; ``row_ids``: with the columns of their ids."""
        return read_snapshot(spark, self.table, self.directories, self.write_ids, row_ids=row_ids)

    def require_exact_moves(self, work: "Work", moved: DataFrame, kept: Collection[str]) -> None:
        """Raise InvalidOperationError when writing rows anew would cut a timestamp in one of the columns ``kept``."""
        require_exact_moves(work.files, work.spark, self.table, self.directories, self.write_ids, moved, kept)

    def require_named_rows(self) -> None:
        """Raise InvalidOperationError when there are rows that no delete event could name."""
        for directory in self.directories:
            if unnamed := directory.sources.unnamed:
                raise InvalidOperationError(
                    f"{unnamed[0]} has no bucket number in its name, so its rows have no ids "
                    "and cannot be changed: rename it like 000000_0."
                )


@dataclass
class Work:
    """A transaction in progress. Not shared between threads."""

    spark: SparkSession
    client: DomainClient
    files: Files
    """Reads listings, footers, small files. It changes nothing."""
    hadoop: FileSystem
    """Spark's own file system: what Spark has written is removed with the same credentials."""
    txn: Transaction | JoinedTransaction
    snapshots: dict[TableName, ValidWriteIdList] = field(default_factory=dict)
    published: list[WrittenDirectory] = field(default_factory=list)
    seen: dict[TableName, dict[str, PartitionPlace]] = field(default_factory=dict)
    """The partitions that were looked up, by table and name."""
    hold: Callable[[DataFrame], DataFrame] = field(default=lambda rows: rows)
    """Applied to each frame that a read returns: the frame keeps the transaction open (``leases``)."""

    def frame(
        self, table: AcidTable, *, row_ids: bool = False, as_of: AsOf | None = None, where: Restriction | None = None
    ) -> DataFrame:
        """The table's rows as this transaction sees them, its own earlier statements included.

        Rows of partitions that ``where`` leaves out may be missing. Parameters and errors: as ``view``.
        """
        return self.hold(self.view(table, as_of=as_of, where=where).frame(self.spark, row_ids=row_ids))

    def view(self, table: AcidTable, *, as_of: AsOf | None = None, where: Restriction | None = None) -> "View":
        """The table's directories as this transaction sees them; ``as_of``: as of a write id or an instant instead.

        ``where``: only the partitions that it leaves. Raises: NotEnoughHistoryError when the files of the past are
        gone, or may be going; InvalidOperationError.
        """
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="Reading a snapshot")
        write_ids = self._past(table, as_of) if as_of is not None else self._snapshot(table)
        directories = snapshot_directories(
            self.client,
            self.files,
            table,
            self.places(table, where),
            write_ids,
            self.txn.valid_txns(),
            is_past=as_of is not None,
            is_part=where is not None,
        )
        return View(table, write_ids, tuple(directories))

    def changes(self, table: AcidTable, after: int, up_to: int | None) -> DataFrame:
        """The changes by write ids above ``after``, up to ``up_to``: as ``read_changes``.

        Raises: NotEnoughHistoryError when a base holds some of the changes; InvalidOperationError.
        """
        table.require(TableKind.FULL_ACID, action="Reading changes")
        if after < 0 or (up_to is not None and up_to < after):
            raise InvalidOperationError(f"Changes are read after one write id up to another, not {after} to {up_to}.")
        wanted = between(self._snapshot(table), after + 1, up_to)
        seen = self.view(table, as_of=wanted.until.high_watermark)
        require_changes(seen.directories, wanted)
        require_no_overwrite(seen.directories, wanted)
        require_ids(seen.directories)
        return self.hold(read_changes(self.spark, table, seen.directories, seen.write_ids, after))

    def next_statement(self, table: AcidTable) -> StatementId:
        """A new statement that writes ``table``; the first of a table allocates its write id."""
        self._snapshot(table)
        return StatementId(self.txn.write_id(table.name.db, table.name.table), self.txn.next_statement())

    def places(self, table: AcidTable, where: Restriction | None = None) -> list[PartitionPlace]:
        """The table's partitions as registered now, without those that ``where`` leaves out.

        An unpartitioned table is a single place.
        """
        places = partition_places(self.client, table, where)
        self.seen.setdefault(table.name, {}).update((place.name, place) for place in places)
        return places

    def publish(
        self,
        table: AcidTable,
        statement: StatementId,
        events: DataFrame,
        operation: Operation,
        *,
        is_routed: bool = False,
    ) -> int:
        """Write the events of a statement; returns the number of changed rows. Invisible until ``commit``.

        Raises: as ``write_acid``; TxnAbortedError.
        """
        locations = self._locations(table)
        ids = (statement.write_id, statement.write_id, statement.statement)
        place, old = (table.location, table.location) if locations is None else (locations, locations.existing)
        self.txn.check()
        written = write_acid(
            events,
            DeltaName(*ids),
            place,
            deletes=Deletes(DeltaName(*ids, is_delete=True), old),
            staging=self._staging(table, statement),
            below=self._below(table),
            is_routed=is_routed,
            may_publish=self.txn.require_open,
        )
        self._take(written)
        return self._announce(table, locations, written, operation) - sum(directory.updates for directory in written)

    def publish_base(
        self,
        table: AcidTable,
        statement: StatementId,
        inserts: DataFrame,
        *,
        keep_empty: Sequence[str],
        is_routed: bool = False,
    ) -> int:
        """Write an INSERT OVERWRITE (ACID-28): a base where there are rows, an empty base in ``keep_empty``.

        Returns the number of rows. Raises: as ``publish``.
        """
        locations = self._locations(table)
        self.txn.check()
        written = write_acid(
            inserts,
            BaseName(statement.write_id),
            table.location if locations is None else locations,
            staging=self._staging(table, statement, "_b"),
            below=self._below(table),
            empty=keep_empty,
            is_routed=is_routed,
            may_publish=self.txn.require_open,
        )
        self._take(written)
        return self._announce(table, locations, written, Operation.UPDATE)

    def publish_rows(
        self,
        table: AcidTable,
        name: BaseName | DeltaName,
        rows: DataFrame,
        *,
        statement: StatementId,
        keep_empty: Sequence[str] = (),
    ) -> int:
        """Write the rows of an insert-only table's statement as a base or a delta; returns their number.

        Raises: as ``write_plain``; TxnAbortedError.
        """
        locations = self._locations(table)
        self.txn.check()
        written = write_plain(
            rows,
            row_type(table),
            name,
            table.location if locations is None else locations,
            staging=self._staging(table, statement, "_p"),
            file_format=table.file_format,
            empty=keep_empty,
            order=table.order,
            may_publish=self.txn.require_open,
        )
        self._take(written)
        is_base = isinstance(name, BaseName)
        return self._announce(table, locations, written, Operation.UPDATE if is_base else Operation.INSERT)

    def commit(self) -> None:
        """Commit: only this makes anything visible.

        Raises: WriteConflictError when a concurrent transaction changed the same table or partition and committed
            first; the other errors of ``Transaction.commit``.
        """
        try:
            self.txn.commit()
        except (AnswerLostError, NoSuchTxnError):  # it may be committed: its files must stay
            raise
        except TxnAbortedError:
            self._remove_published()
            raise
        except MetastoreError:
            self.abort()
            raise

    def abort(self) -> None:
        """Abort, then remove the published files, unless the transaction is committed or may be yet."""
        if self.txn.abort_quietly():
            self._remove_published()

    def release(self) -> None:
        """End a read; a transaction that has timed out meanwhile has ended already."""
        with suppress(MetastoreError):
            self.txn.commit()

    @contextmanager
    def whole_or_not(self) -> Iterator[None]:
        """A statement of a block: when it fails, its files are removed, and the others may still be committed."""
        before = len(self.published)
        try:
            yield
        except BaseException as error:
            try:
                if _leaves_something(error):
                    raise
                self._remove_published(before)
            except BaseException:
                self.txn.abort_quietly()
                raise
            raise

    def _take(self, written: Sequence[WrittenDirectory]) -> None:
        """Note what a statement published. Raises: InvalidOperationError for rows that an own base hides."""
        hidden = [directory.location for directory in written if directory.location in self.txn.overwritten]
        self.published += written
        if hidden:
            raise InvalidOperationError(
                f"This transaction has overwritten {hidden[0]} already: after INSERT OVERWRITE or TRUNCATE "
                "no reader would see its further rows there. Write all rows by one query, or use another transaction."
            )
        for directory in filter(_is_base, written):
            self.txn.overwritten.add(directory.location)

    def _remove_published(self, kept: int = 0) -> None:
        for directory in self.published[kept:]:
            self.hadoop.delete(directory.path)
            if _is_base(directory):
                self.txn.overwritten.discard(directory.location)
        del self.published[kept:]

    def _staging(self, table: AcidTable, statement: StatementId, kind: str = "") -> str:
        return f"{table.location}/{staging_directory(self.txn.id, f'{statement.statement}{kind}')}"

    def _locations(self, table: AcidTable) -> Locations | None:
        if not table.partition_keys:
            return None
        seen = self.seen.get(table.name, {}).values()
        return Locations(self.client, table, seen, partial(read_by, self.spark, table))

    def _below(self, table: AcidTable) -> Below | None:
        """The table's usual place of partitions; None if a partition is known to lie elsewhere."""
        seen = self.seen.get(table.name, {}).values()
        if any(place.location != f"{table.location}/{place.name}" for place in seen):
            return None
        return Below(table.location, table.partition_names)

    def _announce(
        self, table: AcidTable, locations: Locations | None, written: Collection[WrittenDirectory], operation: Operation
    ) -> int:
        """Register new partitions, and the written partitions with the transaction; returns the number of events."""
        if locations is not None:
            touched = {directory.location for directory in written}
            names = locations.registered([key for key, place in locations.items() if place in touched])
            self.txn.add_dynamic_partitions(table.name.db, table.name.table, names, operation)
        return sum(directory.rows for directory in written)

    def _past(self, table: AcidTable, as_of: AsOf) -> ValidWriteIdList:
        if isinstance(as_of, datetime):
            return self.txn.valid_write_ids_at(table.name, as_of)
        return as_of_write_id(self._snapshot(table), as_of)

    def _snapshot(self, table: AcidTable) -> ValidWriteIdList:
        if table.name not in self.snapshots:
            self.snapshots[table.name] = self.txn.valid_write_ids([str(table.name)])[str(table.name)]
        own = self.txn.own_write_id(table.name.db, table.name.table)
        snapshot = self.snapshots[table.name]
        return snapshot if own is None else snapshot.with_own(own)


def _is_base(directory: WrittenDirectory) -> bool:
    return isinstance(parse_directory(directory.path.rpartition("/")[2]), BaseName)


def _leaves_something(error: BaseException | None) -> bool:
    """Whether the error, or an error behind it, is a LeftoverError: removing staging may fail after it too."""
    return error is not None and (isinstance(error, LeftoverError) or _leaves_something(error.__context__))
