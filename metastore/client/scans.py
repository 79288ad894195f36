"""Scans of transactional tables to Arrow, in this process: no Spark, no Java.

    from metastore.client import scan

    scan("sales.orders", uri="thrift://metastore:9083").to_arrow()              # now
    scan("sales.orders", 17, columns=["id", "state"]).to_arrow()                # as of write id 17
    for batch in scan("sales.orders").to_batches(): ...                         # batch by batch

Rule: a read transaction is open while files are being read, so that the Cleaner leaves them; the snapshot is taken when
reading begins, under a shared lock.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.arrow_rows import ArrowRows
from metastore.acid_tables.conjunction import conjunction
from metastore.acid_tables.exact_conditions import exactly
from metastore.acid_tables.listing import Directory, acid_directories
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.table import AcidTable
from metastore.acid_tables.time_travel import AsOf, as_of_write_id, require_kept, sees_all
from metastore.client.client import MetastoreClient
from metastore.client.compactions import cleaned_write_ids, untouched_compactions
from metastore.client.domain_client import DomainClient
from metastore.client.lock_plan import statement_locks, target_of
from metastore.client.partitions import partition_places
from metastore.client.txn_manager import Transaction, TxnManager
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.ids import full_table_name
from metastore.txns.core.rules import TxnType


@dataclass(frozen=True)
class Scan:
    """A described scan; it calls and reads nothing before ``to_arrow`` or ``to_batches``. It can be read once."""

    table: str
    snapshot: AsOf | None
    columns: Sequence[str] | None
    partitions: Sequence[Sequence[str]]
    client: DomainClient
    files: Files

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table. Raises: as ``to_batches``."""
        with self._rows() as rows:
            return pa.Table.from_batches(rows.batches(), rows.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, batch by batch; the transaction ends with the last batch, or when the iterator is closed.

        Raises: NoSuchObjectError, InvalidOperationError (a table without transactions, an unknown column),
            NotEnoughHistoryError, LockNotAcquiredError, OSError (a file cannot be read).
        """
        with self._rows() as rows:
            yield from rows.batches()

    @contextmanager
    def _rows(self) -> Iterator[ArrowRows]:
        try:
            with TxnManager(self.client).transaction(kind=TxnType.READ_ONLY, agent="metastore.client.scan") as txn:
                yield self._planned(txn)
        finally:
            self.client.close()

    def _planned(self, txn: Transaction) -> ArrowRows:
        name = full_table_name(self.table)
        table = AcidTable.of(name, self.client.get_table(name.db, name.table))
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="Reading a snapshot")
        txn.lock(statement_locks([target_of(table)]))
        write_ids = self._write_ids(txn, table)
        conditions = [list(condition) for condition in self.partitions]
        where, meets = conjunction(conditions, table.partition_keys), exactly(conditions, table.partition_keys)
        directories = snapshot_directories(
            self.client,
            self.files,
            table,
            [place for place in partition_places(self.client, table, where) if meets(place.values)],
            write_ids,
            txn.valid_txns(),
            is_past=self.snapshot is not None,
            is_part=bool(conditions),
        )
        names = self.columns
        if names is None:
            names = [column.name for column in (*table.columns, *table.partition_keys)]
        return ArrowRows(self.files, table, directories, write_ids, [name.lower() for name in names])

    def _write_ids(self, txn: Transaction, table: AcidTable) -> ValidWriteIdList:
        name = str(table.name)
        now = txn.valid_write_ids([name], no_others=True)[name]
        if isinstance(self.snapshot, datetime):
            if self.snapshot.tzinfo is None:
                raise InvalidOperationError(f"{self.snapshot} has no time zone: add it.")
            return txn.valid_write_ids_at(table.name, self.snapshot)
        return now if self.snapshot is None else as_of_write_id(now, self.snapshot)


def scan(
    table: str,
    snapshot: AsOf | None = None,
    *,
    columns: Sequence[str] | None = None,
    partitions: Sequence[Sequence[str]] = (),
    client: MetastoreClient | None = None,
    uri: str | None = None,
    files: Files | None = None,
) -> Scan:
    """Describe a scan of ``db.table`` in one snapshot.

    ``snapshot``: a write id or an instant of the past; None: now. ``columns``: the columns in this order; None: all,
    partition keys last. ``partitions``: conditions on partition keys that must all hold, like ``("day", ">=",
    "2026-01-01")``; a condition that cannot be decided is refused when reading begins. ``client`` or ``uri``: the
    metastore. Raises: ValueError (the address).
    """
    own = DomainClient(uri) if client is None else DomainClient.like(client)
    return Scan(table, snapshot, columns, partitions, own, files or Files())


def snapshot_directories(
    client: DomainClient,
    files: Files,
    table: AcidTable,
    places: Sequence[PartitionPlace],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    is_past: bool = False,
    is_part: bool = False,
    by_write_id: bool = True,
) -> list[Directory]:
    """Return the directories of these partitions in a snapshot, with their sources.

    ``by_write_id``: of the past, the deltas are wanted whose write ids changes are asked by, though a compaction
    has the same rows in one base. Other parameters: as ``acid_directories``.
    Raises: as ``acid_directories``; NotEnoughHistoryError if files of the past are gone, or may go now.
    """
    if is_past:  # A past snapshot reads the files that bases replaced: these may hold later rows.
        compactions = untouched_compactions(client, table.name)
        txns = txns.without(
            txn for txn, up_to in compactions.items() if by_write_id or not up_to or not sees_all(write_ids, up_to)
        )
    directories = acid_directories(files, table, places, write_ids, txns, is_past=is_past, is_part=is_part)
    if is_past:  # Checked after the listing, because the Cleaner may remove files meanwhile.
        require_kept(files, table.kind, directories, write_ids, cleaned_write_ids(client, table.name))
    return directories
