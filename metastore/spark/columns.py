"""ALTER TABLE of a transactional table's columns, which Spark does not do for tables of Hive's kind.

Rule: files stay as they are, and readers find their columns by name. So a column may be moved, widened or dropped; what
would make rows that are there read differently is refused: a rename while there are files, a type that cannot hold all.
"""

from collections.abc import Sequence
from dataclasses import replace

from metastore.acid.names import is_hidden
from metastore.acid.types import HiveType, parse_type
from metastore.client import MetastoreClient
from metastore.client.answers import domain_errors
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.statements import ChangeColumn, ColumnDefinition, DropColumns, ReplaceColumns
from metastore.spark.tables import AcidTable, TableKind

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_REAL = ("float", "double")
_TEXT = ("char", "varchar", "string")


def alter_columns(client: MetastoreClient, files: Files, table: AcidTable, locations: Sequence[str],
                  statement: ChangeColumn | ReplaceColumns | DropColumns) -> None:
    """Change columns of ``table``; ``locations``: of its partitions, or its own. The caller holds its exclusive lock.

    Raises: InvalidOperationError.
    """
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="ALTER TABLE")
    found = client.get_table(table.name.db, table.name.table)
    before = tuple(ColumnDefinition(one.name.lower(), one.type, one.comment) for one in found.sd.cols)
    after = altered(before, statement)
    _require_kept(table, before, after)
    if isinstance(statement, ChangeColumn) and statement.name != statement.old and any(
            not entry.is_dir and entry.size and not any(is_hidden(part) for part in entry.path.split("/"))
            for location in locations for entry in files.listing(location)):
        raise InvalidOperationError(
            f"{table.name} has files, in which {statement.old} is named so: rows that are there would be NULL in "
            f"{statement.name}. ADD COLUMNS ({statement.name} ...), UPDATE ... SET {statement.name} = {statement.old}, "
            f"then DROP COLUMN {statement.old}.")
    field = client.types.FieldSchema
    found.sd.cols = [field(name=one.name, type=one.type, comment=one.comment) for one in after]
    with domain_errors():
        if statement.cascade:
            client.alter_table_with_cascade(table.name.db, table.name.table, found, True)  # noqa: FBT003 - Thrift's
        else:
            client.alter_table(table.name.db, table.name.table, found)


def altered(columns: Sequence[ColumnDefinition],
            statement: ChangeColumn | ReplaceColumns | DropColumns) -> tuple[ColumnDefinition, ...]:
    """The columns as they are to be. Raises: InvalidOperationError."""
    names = [one.name for one in columns]
    result = list(columns)
    match statement:
        case ReplaceColumns(columns=given):
            result = list(given)
        case DropColumns(names=gone):
            _require_known(names, gone)
            result = [one for one in columns if one.name not in gone]
        case ChangeColumn():
            _require_known(names, [statement.old, *([statement.after] if statement.after else [])])
            at = names.index(statement.old)
            old, result = columns[at], [one for one in columns if one.name != statement.old]
            new = replace(old, name=statement.name, type=statement.type or old.type,
                          comment=old.comment if statement.comment is None else statement.comment)
            if statement.after == statement.old:
                raise InvalidOperationError(f"{statement.old} cannot come after itself.")
            if statement.after is not None:
                at = [one.name for one in result].index(statement.after) + 1 if statement.after else 0
            result.insert(at, new)
    if not result:
        raise InvalidOperationError("A table has at least one column.")
    if len({one.name for one in result}) < len(result):
        raise InvalidOperationError("Two columns would have the same name.")
    return tuple(result)


def _require_known(names: Sequence[str], wanted: Sequence[str]) -> None:
    if unknown := [name for name in wanted if name not in names]:
        raise InvalidOperationError(f"There is no column {unknown[0]}. There is: {', '.join(names)}.")


def _require_kept(table: AcidTable, before: Sequence[ColumnDefinition], after: Sequence[ColumnDefinition]) -> None:
    new = {one.name: one.type for one in after}
    used = {*table.bucket_columns, *(name for name, _ in table.order)}
    for column in before:
        kind = new.get(column.name)
        if column.name in used and (kind is None or parse_type(kind) != parse_type(column.type)):
            raise InvalidOperationError(f"{column.name} decides about the buckets of {table.name}: it stays as it is.")
        if kind is not None and not is_wider(parse_type(column.type), parse_type(kind)):
            raise InvalidOperationError(f"{column.name} is {column.type}, and {kind} does not hold all of its values "
                                        "as they are. ADD a COLUMN, and UPDATE it with a CAST.")
    if taken := new.keys() & set(table.partition_names):
        raise InvalidOperationError(f"{min(taken)} is a partition key of {table.name}.")


def is_wider(old: HiveType, new: HiveType) -> bool:
    """Whether readers see each value of a file with ``old`` unchanged when they ask for ``new``."""
    if old == new:
        return True
    for chain in (_WHOLE, _REAL):
        if old.kind in chain and new.kind in chain:
            return chain.index(old.kind) < chain.index(new.kind)
    if old.kind == new.kind == "decimal":
        (precision, scale), (wider, finer) = ((*one.arguments, *(10, 0)[len(one.arguments):]) for one in (old, new))
        return bool(finer >= scale and wider - finer >= precision - scale)
    if old.kind in _TEXT and new.kind in _TEXT:
        return new.kind == "string" or bool(old.arguments and new.kind == old.kind and new.arguments >= old.arguments)
    return False
