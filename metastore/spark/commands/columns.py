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

    Raises: InvalidOperationError when existing rows would read differently afterwards.
    """
    declared = client.get_table(table.name.db, table.name.table)
    before = tuple(ColumnDefinition(column.name.lower(), column.type, column.comment) for column in declared.sd.cols)
    after = altered(before, statement)
    is_rename = isinstance(statement, ChangeColumn) and statement.name != statement.old
    renamed = [(statement.old, statement.name)] if isinstance(statement, ChangeColumn) and is_rename else []
    require_same_rows(files, table, locations, before, after, renamed)
    field = client.types.FieldSchema
    declared.sd.cols = [field(name=column.name, type=column.type, comment=column.comment) for column in after]
    if statement.cascade:
        client.alter_table_with_cascade(table.name.db, table.name.table, declared, True)  # noqa: FBT003 - Thrift's
    else:
        client.alter_table(table.name.db, table.name.table, declared)


def altered(
    columns: Sequence[ColumnDefinition], statement: AddColumns | ChangeColumn | ReplaceColumns | DropColumns
) -> tuple[ColumnDefinition, ...]:
    """The columns after the statement. Raises: InvalidOperationError for an unknown column, or a name twice."""
    names = [column.name for column in columns]
    result = list(columns)
    match statement:
        case AddColumns(columns=columns_of_statement):
            result += columns_of_statement
        case ReplaceColumns(columns=columns_of_statement):
            result = list(columns_of_statement)
        case DropColumns(names=dropped):
            require_known(names, dropped)
            result = [column for column in columns if column.name not in dropped]
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
