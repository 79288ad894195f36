"""The rows of a snapshot as Arrow's batches, without Spark: whatever kind of file they are in.

Rules: a row counts as for every reader: its write id is visible, and no visible delete event of its directory names it.
Columns are known by their names in any case, in files of old Hives (``_col0``) by their places. A column that a file
lacks is NULL. Timestamps are wall clocks, as in ORC.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import orc, parquet

from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS
from metastore.acid.originals import SyntheticIds
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.table_kinds import TableKind
from metastore.acid.types import HiveType, parse_type
from metastore.acid_tables.arrow_types import arrow_type, partition_scalar
from metastore.acid_tables.conversions import fitted
from metastore.acid_tables.delete_files import DeleteFiles
from metastore.acid_tables.deleted import deleted_rows
from metastore.acid_tables.footers import are_nameless, damage_named
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.orc_rows import OrcRows
from metastore.acid_tables.sources import committed_bytes
from metastore.acid_tables.table import AcidTable
from metastore.acid_tables.visibility import Visibility, visibility
from metastore.errors import InvalidOperationError
from metastore.files import Files

_OPERATION, _WRITE_ID, _BUCKET, _ROW_ID, _BY, _ROW = EVENT_COLUMNS
_IDS = (_WRITE_ID, _BUCKET, _ROW_ID)

Numbers = NDArray[np.int64]
Kept = NDArray[np.bool_]


@dataclass(frozen=True)
class ArrowRows:
    """A scan of a table's directories. ``columns``: names of wanted columns and partition keys, lower case."""

    files: Files
    table: AcidTable
    directories: Sequence[Directory]
    write_ids: ValidWriteIdList
    columns: Sequence[str]

    @cached_property
    def schema(self) -> pa.Schema:
        """The wanted columns, in the order of ``columns``. Raises: InvalidOperationError for an unknown name."""
        kinds = self._kinds
        if unknown := [name for name in self.columns if name not in kinds]:
            raise InvalidOperationError(f"{self.table.name} has no column {unknown[0]}. It has: {', '.join(kinds)}.")
        if not self.columns:
            raise InvalidOperationError("A scan names at least one column.")
        return pa.schema([pa.field(name, arrow_type(kinds[name], name)) for name in self.columns])

    @cached_property
    def _kinds(self) -> dict[str, HiveType]:
        return {column.name: parse_type(column.type) for column in (*self.table.columns, *self.table.partition_keys)}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, in batches of ``schema``.

        Raises: InvalidOperationError for files that only Hive or Spark reads; OSError, with the path, for a damaged
        file.
        """
        deleted = _Deleted(self.files, self.directories, self.write_ids)
        visible = visibility([directory.state for directory in self.directories], self.write_ids, deletes=False)
        for number, directory in enumerate(self.directories):
            keys = dict(zip(self.table.partition_names, directory.values, strict=True))
            for batch in self._of_directory(directory, number, visible, deleted):
                if batch.num_rows:
                    yield self._shaped(batch, keys)

    def _of_directory(
        self, directory: Directory, number: int, visible: Visibility, deleted: "_Deleted"
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows with the wanted columns that the files have, under the names of the table."""
        sources = directory.sources
        if self.table.kind is TableKind.INSERT_ONLY:
            stored_as = directory.stored_as or self.table.file_format
            for file in sources.events:
                yield from self._plain(file.path, str(stored_as))
            return
        for file in sources.events:
            with self.files.open(file.path) as source:
                yield from self._events(file.path, source, number, visible, deleted)
        for cut in sources.cut:
            content = pa.BufferReader(committed_bytes(self.files, cut))
            yield from self._events(cut.path, content, number, visible, deleted)
        for ids in sources.plain:
            yield from self._numbered(ids, number, deleted)
        for path in sources.unnamed:
            yield from self._plain(path, "orc")

    def _events(
        self, path: str, source: Any, number: int, visible: Visibility, deleted: "_Deleted"
    ) -> Iterator[pa.RecordBatch]:
        with damage_named(path):
            file = OrcRows(source)
            names = _known_as([field.name for field in file.schema.field(_ROW).type], self._own)
            wanted = [_ROW] if any("." in name for name in names) else [f"{_ROW}.{name}" for name in names]
            stripes = (file.read_stripe(at, [*EVENT_COLUMNS[:-1], *wanted]) for at in range(file.nstripes))
        for stripe in _named(path, stripes):
            kept = _visible(stripe, visible) & ~deleted.holds(*_ids(stripe), number)
            rows = stripe.filter(pa.array(kept))
            if not names:
                yield pa.RecordBatch.from_arrays([pa.nulls(rows.num_rows)], [_ROW])
                continue
            row = rows.column(rows.schema.get_field_index(_ROW))
            fields = dict(zip([field.name for field in row.type], row.flatten(), strict=True))
            yield pa.RecordBatch.from_arrays([fields[name] for name in names], list(names.values()))

    def _numbered(self, ids: SyntheticIds, number: int, deleted: "_Deleted") -> Iterator[pa.RecordBatch]:
        position = ids.first_row_id
        for batch in self._plain(ids.path, "orc"):
            rows = np.arange(position, position + batch.num_rows, dtype=np.int64)
            same = np.full(batch.num_rows, ids.write_id, np.int64), np.full(batch.num_rows, ids.bucket, np.int64)
            yield batch.filter(pa.array(~deleted.holds(*same, rows, number)))
            position += batch.num_rows

    def _plain(self, path: str, stored_as: str) -> Iterator[pa.RecordBatch]:
        if stored_as not in ("orc", "parquet"):
            raise InvalidOperationError(
                f"{path} of {self.table.name} is stored in a way that only Hive's own classes read: use Spark or Hive."
            )
        with self.files.open(path) as source:
            with damage_named(path):
                if stored_as == "orc":
                    file = OrcRows(source)
                    names = _known_as(file.schema.names, self._own)
                    batches = (file.read_stripe(at, list(names) or None) for at in range(file.nstripes))
                else:
                    file = parquet.ParquetFile(source, coerce_int96_timestamp_unit="us")  # as Spark
                    names = _known_as(file.schema_arrow.names, self._own)
                    batches = file.iter_batches(columns=list(names) or None)
            for batch in _named(path, batches):
                values = [batch.column(batch.schema.get_field_index(name)) for name in names]
                if values:
                    yield pa.RecordBatch.from_arrays(values, list(names.values()))
                else:  # No column is wanted: only the number of rows counts.
                    yield pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], [_ROW])

    @cached_property
    def _own(self) -> dict[str, int]:
        """The wanted columns that files store, with their positions in the table."""
        return {column.name: at for at, column in enumerate(self.table.columns) if column.name in self.columns}

    def _shaped(self, batch: pa.RecordBatch, keys: Mapping[str, str | None]) -> pa.RecordBatch:
        """Return the wanted columns in their types, partition keys among them."""
        arrays_of_file = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
        arrays = []
        for field in self.schema:
            if field.name in keys:
                arrays.append(_constant(keys[field.name], field, batch.num_rows))
            elif field.name in self._own and field.name in arrays_of_file:
                arrays.append(fitted(arrays_of_file[field.name], self._kinds[field.name]))
            else:
                arrays.append(pa.nulls(batch.num_rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class _Deleted:
    """The deleted rows of a snapshot: as bits, or as a table of their ids if bits would be too many."""

    def __init__(self, files: Files, directories: Sequence[Directory], write_ids: ValidWriteIdList) -> None:
        deletes = DeleteFiles.of(files, [file for directory in directories for file in directory.sources.deletes])
        self._is_none = deletes.events(file for directory in directories for file in directory.sources.deletes) == 0
        self._bits = None if self._is_none else deleted_rows(files, directories, write_ids, deletes)
        self._files, self._directories = files, directories
        self._visible = visibility([directory.state for directory in directories], write_ids, deletes=True)
        self._named: dict[int, pa.Table] = {}

    def holds(self, write_ids: Numbers, buckets: Numbers, row_ids: Numbers, directory: int) -> Kept:
        """Return which of these rows of a directory are deleted."""
        if self._is_none or not self._directories[directory].sources.deletes:
            return np.zeros(len(row_ids), np.bool_)
        write_ids, buckets = write_ids.astype(np.int64), buckets.astype(np.int64)
        if self._bits is not None:
            return self._bits.holds(write_ids, buckets, row_ids, directory)
        if directory not in self._named:
            self._named = {
                directory: self._of_directory(self._directories[directory])
            }  # The cache holds the ids of one directory only, to save memory.
        places = pa.array(np.arange(len(row_ids)))
        rows = pa.table([*map(pa.array, (write_ids, buckets, row_ids)), places], [*_IDS, "place"])
        deleted = np.zeros(len(row_ids), np.bool_)
        deleted[rows.join(self._named[directory], list(_IDS), join_type="left semi")["place"].to_numpy()] = True
        return deleted

    def _of_directory(self, directory: Directory) -> pa.Table:
        tables = []
        for file in directory.sources.deletes:
            with self._files.open(file.path) as source, damage_named(file.path):
                events = orc.ORCFile(source).read(columns=list(EVENT_COLUMNS[:-1]))
            counts = (events[_OPERATION].to_numpy() == DELETE_EVENT) & _by_visible(
                events[_BY].to_numpy(), self._visible
            )
            ids = events.filter(pa.array(counts)).select(list(_IDS))
            tables.append(ids.cast(pa.schema([(name, pa.int64()) for name in _IDS])))
        return pa.concat_tables(tables)


def _ids(events: pa.RecordBatch) -> tuple[Numbers, Numbers, Numbers]:
    write_ids, buckets, row_ids = (events.column(events.schema.get_field_index(name)).to_numpy() for name in _IDS)
    return write_ids, buckets, row_ids


def _visible(events: pa.RecordBatch, visible: Visibility) -> Kept:
    kept = _by_visible(events.column(events.schema.get_field_index(_BY)).to_numpy(), visible)
    if visible.by_operation:
        kept &= events.column(events.schema.get_field_index(_OPERATION)).to_numpy() < DELETE_EVENT
    return kept


def _by_visible(by: Numbers, visible: Visibility) -> Kept:
    kept = np.ones(len(by), np.bool_)
    if visible.high_watermark is not None:
        kept &= by <= visible.high_watermark
    if visible.hidden:
        kept &= ~np.isin(by, visible.hidden)
    return kept


def _named(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches unchanged; an error while reading names the file."""
    while True:
        with damage_named(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _known_as(names: Sequence[str], wanted: Mapping[str, int]) -> dict[str, str]:
    """Map the column names of a file to those of the table.

    ``wanted``: the table's names and their positions.
    """
    if are_nameless(names):
        return {names[place]: name for name, place in wanted.items() if place < len(names)}
    here = {name.lower(): name for name in reversed(names)}
    return {here[name]: name for name in wanted if name in here}


def _constant(text: str | None, field: pa.Field, count: int) -> pa.Array:
    """Repeat a partition's value for each row. Raises: InvalidOperationError for a text that is not of its type."""
    return pa.nulls(count, field.type) if text is None else pa.repeat(partition_scalar(text, field), count)
