"""ALTER TABLE of a transactional table's columns, which Spark does not do for tables of Hive's kind."""

from collections.abc import Sequence
from dataclasses import replace

from metastore.acid_tables.column_changes import placed, require_columns, require_known, require_same_rows
from metastore.acid_tables.table import AcidTable, ColumnDefinition
from metastore.client import DomainClient
from metastore.files import Files
from metastore.spark.sql.statements import AddColumns, ChangeColumn, DropColumns, ReplaceColumns


def alter_columns(
    client: DomainClient,
    files: Files,
    table: AcidTable,
    locations: Sequence[str],
    statement: AddColumns | ChangeColumn | ReplaceColumns | DropColumns,
) -> None:
    """Change columns of ``table``; ``locations``: of its partitions, or its own. The caller holds its exclusive lock.

    Raises: InvalidOperationError.
    """
    found = client.get_table(table.name.db, table.name.table)
    before = tuple(ColumnDefinition(one.name.lower(), one.type, one.comment) for one in found.sd.cols)
    after = altered(before, statement)
    is_rename = isinstance(statement, ChangeColumn) and statement.name != statement.old
    renamed = [(statement.old, statement.name)] if isinstance(statement, ChangeColumn) and is_rename else []
    require_same_rows(files, table, locations, before, after, renamed)
    field = client.types.FieldSchema
    found.sd.cols = [field(name=one.name, type=one.type, comment=one.comment) for one in after]
    if statement.cascade:
        client.alter_table_with_cascade(table.name.db, table.name.table, found, True)  # noqa: FBT003 - Thrift's
    else:
        client.alter_table(table.name.db, table.name.table, found)


def altered(
    columns: Sequence[ColumnDefinition], statement: AddColumns | ChangeColumn | ReplaceColumns | DropColumns
) -> tuple[ColumnDefinition, ...]:
    """The columns as they are to be. Raises: InvalidOperationError."""
    names = [one.name for one in columns]
    result = list(columns)
    match statement:
        case AddColumns(columns=given):
            result += given
        case ReplaceColumns(columns=given):
            result = list(given)
        case DropColumns(names=gone):
            require_known(names, gone)
            result = [one for one in columns if one.name not in gone]
        case ChangeColumn():
            require_known(names, [statement.old])
            old = columns[names.index(statement.old)]
            new = replace(
                old,
                name=statement.name,
                type=statement.type or old.type,
                comment=old.comment if statement.comment is None else statement.comment,
            )
            result = list(placed(columns, statement.old, new, statement.after))
    require_columns(result)
    return tuple(result)
