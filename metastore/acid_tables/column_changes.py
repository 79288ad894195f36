"""Changes of a transactional table's columns: the rule for those that leave its files readable.

Rule: files stay as they are, and readers find their columns by name. So a column may be added, moved, widened or
dropped. A change is refused when existing rows would read differently after it: a rename while there are files, a type
that cannot hold every value, the name of a dropped column whose values are still in files. Files of old Hives, which do
not name their columns (``_col0``), are read by place.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from pyarrow import ArrowException, orc, parquet

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.names import SIDE_FILE_SUFFIX, is_hidden
from metastore.acid.table_kinds import TableKind
from metastore.acid.types import HiveType, parse_type
from metastore.acid_tables.footers import are_nameless
from metastore.acid_tables.serde_storage import HiveStorage, require_alterable
from metastore.acid_tables.struct_fields import is_extended
from metastore.acid_tables.table import AcidTable, ColumnDefinition, require_user_names
from metastore.errors import InvalidOperationError
from metastore.files import Files

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_REAL = ("float", "double")
_TEXT = ("char", "varchar", "string")
_READERS = 8


class FileColumns(NamedTuple):
    """The names of a file's columns, lower case."""

    path: str
    names: tuple[str, ...]

    @property
    def is_nameless(self) -> bool:
        """True if readers know the columns by their positions."""
        return are_nameless(self.names)


def require_same_rows(
    files: Files,
    table: AcidTable,
    locations: Sequence[str],
    before: Sequence[ColumnDefinition],
    after: Sequence[ColumnDefinition],
    renamed: Sequence[tuple[str, str]] = (),
) -> None:
    """Raise InvalidOperationError when existing rows would read differently with the columns ``after``.

    ``locations``: the directories of the partitions or of the table. ``renamed``: pairs of old and new names.
    """
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="ALTER TABLE")
    require_columns(after)
    require_user_names(table.name, [column.name.lower() for column in after])
    _require_kept(table, before, after)
    paths = list(_data_files(files, locations))
    storage = table.file_format
    if isinstance(storage, HiveStorage) and paths:
        require_alterable(
            str(table.name),
            storage,
            [(column.name, column.type) for column in before],
            [(column.name, column.type) for column in after],
        )
    is_named = not isinstance(storage, HiveStorage) or storage.is_by_name
    if renamed and paths and is_named:
        old, new = renamed[0]
        raise InvalidOperationError(
            f"{table.name} has files that call the column {old}: their rows would be NULL in "
            f"{new}. ADD COLUMNS ({new} ...), UPDATE ... SET {new} = {old}, then DROP COLUMN {old}."
        )
    if storage in _SCHEMAS:
        with ThreadPoolExecutor(_READERS) as pool:
            require_read_alike(
                [column.name for column in before],
                [column.name for column in after],
                pool.map(partial(_columns_of, files), paths, repeat(table)),
            )


def require_known(names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise InvalidOperationError for a wanted name that is not among ``names``."""
    if unknown := [name for name in wanted if name not in names]:
        raise InvalidOperationError(f"There is no column {unknown[0]}. There is: {', '.join(names)}.")


def require_columns(columns: Sequence[ColumnDefinition]) -> None:
    """Raise InvalidOperationError for no columns, or two of one name."""
    if not columns:
        raise InvalidOperationError("A table has at least one column.")
    if len({column.name for column in columns}) < len(columns):
        raise InvalidOperationError("Two columns would have the same name.")


def placed(
    columns: Sequence[ColumnDefinition], old: str, new: ColumnDefinition, after: str | None
) -> tuple[ColumnDefinition, ...]:
    """Return the columns with ``new`` in place of ``old``, or behind ``after``; "": first; None: where it is.

    Raises: InvalidOperationError.
    """
    names = [column.name for column in columns]
    require_known(names, [old, *([after] if after else [])])
    at, result = names.index(old), [column for column in columns if column.name != old]
    if after == old:
        raise InvalidOperationError(f"{old} cannot come after itself.")
    if after is not None:
        at = [column.name for column in result].index(after) + 1 if after else 0
    result.insert(at, new)
    return tuple(result)


def require_read_alike(before: Sequence[str], after: Sequence[str], files: Iterable[FileColumns]) -> None:
    """Raise InvalidOperationError when a column would read values of files that belong to another column."""
    fresh = {name: place for place, name in enumerate(after) if name not in before}
    moved = [name for place, name in enumerate(after) if name in before and before.index(name) != place]
    for file in files if fresh or moved else ():
        if moved and file.is_nameless:
            raise InvalidOperationError(
                f"{file.path} does not name its columns, so they are known by their places, "
                f"and {moved[0]} would get another place. A major compaction names them."
            )
        if held := [
            name
            for name, place in fresh.items()
            if (place < len(file.names) if file.is_nameless else name in file.names)
        ]:
            raise InvalidOperationError(
                f"{file.path} still holds values of a column {held[0]} that was dropped: they would be visible again. "
                "Take another name, or let a major compaction write the files anew and the Cleaner remove these."
            )


def _data_files(files: Files, locations: Sequence[str]) -> Iterator[str]:
    """Yield paths of all files that hold rows, those of no snapshot included."""
    for location in locations:
        for entry in files.listing(location):
            is_data = not entry.is_dir and entry.size and not entry.path.endswith(SIDE_FILE_SUFFIX)
            if is_data and not any(
                is_hidden(part) or part.startswith("delete_delta_") for part in entry.path.split("/")
            ):
                yield f"{location}/{entry.path}"


def _columns_of(files: Files, path: str, table: AcidTable) -> FileColumns:
    def read() -> Any:
        with files.open(path) as source:
            return _SCHEMAS[str(table.file_format)](source)

    try:
        schema = files.ask(path, read)
        top = tuple(schema.names)
    except (ArrowException, UnicodeDecodeError, OSError) as error:
        raise InvalidOperationError(f"{path} cannot be read, so its columns are not known: {error}") from error
    is_acid = table.kind is TableKind.FULL_ACID and top == EVENT_COLUMNS
    names = [field.name for field in schema.field("row").type] if is_acid else top
    return FileColumns(path, tuple(name.lower() for name in names))


_SCHEMAS = {
    "orc": lambda source: orc.ORCFile(source).schema,
    "parquet": lambda source: parquet.ParquetFile(source).schema_arrow,
}


def _require_kept(table: AcidTable, before: Sequence[ColumnDefinition], after: Sequence[ColumnDefinition]) -> None:
    new = {column.name: column.type for column in after}
    used = {*table.bucket_columns, *(name for name, _ in table.order)}
    for column in before:
        kind = new.get(column.name)
        if column.name in used and (kind is None or parse_type(kind) != parse_type(column.type)):
            raise InvalidOperationError(f"{column.name} decides about the buckets of {table.name}: it stays as it is.")
        if kind is not None and not is_wider(parse_type(column.type), parse_type(kind)):
            raise InvalidOperationError(
                f"{column.name} is {column.type}, and {kind} does not hold all of its values "
                "as they are. ADD a COLUMN, and UPDATE it with a CAST."
            )
    if taken := new.keys() & set(table.partition_names):
        raise InvalidOperationError(f"{min(taken)} is a partition key of {table.name}.")


def is_wider(old: HiveType, new: HiveType) -> bool:
    """Return True if readers see each value of a file with ``old`` unchanged when they ask for ``new``."""
    if is_extended(old, new):
        return True
    for chain in (_WHOLE, _REAL):
        if old.kind in chain and new.kind in chain:
            return chain.index(old.kind) < chain.index(new.kind)
    if old.kind == new.kind == "decimal":
        (precision, scale), (wider, finer) = (old.precision_and_scale, new.precision_and_scale)
        return bool(finer >= scale and wider - finer >= precision - scale)
    if old.kind in _TEXT and new.kind in _TEXT:
        return new.kind == "string" or bool(old.arguments and new.kind == old.kind and new.arguments >= old.arguments)
    return False
