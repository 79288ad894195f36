"""Messages of the catalog's events, as Hive's JSON has them.

Rule: a message is made of the objects that the call has read or stored anyway, as they were before and are after it.
A call has one event where Hive writes one. Objects are texts, Thrift's JSON, which ``Texts`` writes.
Source: CAT-E1 to CAT-E5; keys as in Hive's package ``messaging.json``.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple, Protocol

from metastore.catalog.model import (
    Catalog,
    ColumnStatistics,
    ConstraintColumn,
    ConstraintKind,
    Database,
    Function,
    Table,
)
from metastore.catalog.rules.partitions import Partition
from metastore.ids import DEFAULT_CATALOG, DatabaseName, TableName
from metastore.partition_names import values_for
from metastore.txns.events.rules import Event

IN_ONE_MESSAGE = 1000
"""Partitions of one ALTER_PARTITIONS event, as many as Hive's ``metastore.jdbc.max.batch.size``."""


class EventType(StrEnum):
    """Types of events; the value is the text in the log, which is not Hive's name of the constant everywhere."""

    CREATE_CATALOG = "CREATE_CATALOG"
    ALTER_CATALOG = "ALTER_CATALOG"
    DROP_CATALOG = "DROP_CATALOG"
    CREATE_DATABASE = "CREATE_DATABASE"
    ALTER_DATABASE = "ALTER_DATABASE"
    DROP_DATABASE = "DROP_DATABASE"
    CREATE_TABLE = "CREATE_TABLE"
    ALTER_TABLE = "ALTER_TABLE"
    DROP_TABLE = "DROP_TABLE"
    ADD_PARTITION = "ADD_PARTITION"
    ALTER_PARTITION = "ALTER_PARTITION"
    ALTER_PARTITIONS = "ALTER_PARTITIONS"
    DROP_PARTITION = "DROP_PARTITION"
    INSERT = "INSERT"
    RELOAD = "RELOAD"
    CREATE_FUNCTION = "CREATE_FUNCTION"
    DROP_FUNCTION = "DROP_FUNCTION"
    DROP_CONSTRAINT = "DROP_CONSTRAINT"
    UPDATE_TABLE_STATISTICS = "UPDATE_TBL_COL_STAT_EVENT"
    UPDATE_PARTITION_STATISTICS = "UPDATE_PART_COL_STAT_EVENT"
    DELETE_TABLE_STATISTICS = "DELETE_TBL_COL_STAT_EVENT"
    DELETE_PARTITION_STATISTICS = "DELETE_PART_COL_STAT_EVENT"
    CREATE_CONNECTOR = "CREATE_DATACONNECTOR"
    ALTER_CONNECTOR = "ALTER_DATACONNECTOR"
    DROP_CONNECTOR = "DROP_DATACONNECTOR"


_CONSTRAINTS = {
    ConstraintKind.PRIMARY_KEY: ("ADD_PRIMARYKEY", "primaryKeyListJson"),
    ConstraintKind.FOREIGN_KEY: ("ADD_FOREIGNKEY", "foreignKeyListJson"),
    ConstraintKind.UNIQUE: ("ADD_UNIQUECONSTRAINT", "uniqueConstraintListJson"),
    ConstraintKind.NOT_NULL: ("ADD_NOTNULLCONSTRAINT", "notNullConstraintListJson"),
    ConstraintKind.CHECK: ("ADD_CHECKCONSTRAINT", "checkConstraintListJson"),
    ConstraintKind.DEFAULT: ("ADD_DEFAULTCONSTRAINT", "defaultConstraintListJson"),
}
"""The type of each kind's event and the key of its rows, in the order in which Hive writes those of one table."""


class Texts(Protocol):
    """Writer of objects as Thrift's JSON."""

    def catalog(self, catalog: Catalog) -> str:
        """Return a catalog's text."""

    def database(self, database: Database) -> str:
        """Return a database's text."""

    def tables(self, *tables: Table) -> list[str]:
        """Return the text of each table."""

    def partitions(self, table: TableName, partitions: Sequence[Partition]) -> list[str]:
        """Return the text of each partition."""

    def function(self, function: Function) -> str:
        """Return a function's text."""

    def constraints(self, kind: ConstraintKind, columns: Sequence[ConstraintColumn]) -> list[str]:
        """Return the text of each column of constraints of one kind."""

    def statistics(self, table: TableName, partition: str, statistics: Sequence[ColumnStatistics]) -> str:
        """Return the text of the statistics of a table, or of one of its partitions."""


class Written(NamedTuple):
    """Files that a client wrote to a table, or to one of its partitions (``partition`` is not None)."""

    partition: Partition | None
    files: Sequence[str]
    replaces: bool


# Catalogs, databases, functions, connectors


def catalog_created(_texts: Texts, catalog: Catalog) -> list[Event]:
    """Return the event of a new catalog."""
    return [Event(EventType.CREATE_CATALOG, catalog.name, None, None, {"catalog": catalog.name})]


def catalog_altered(texts: Texts, before: Catalog, after: Catalog) -> list[Event]:
    """Return the event of an altered catalog."""
    message = {"catObjBeforeJson": texts.catalog(before), "catObjAfterJson": texts.catalog(after)}
    return [Event(EventType.ALTER_CATALOG, before.name, None, None, message)]


def catalog_dropped(_texts: Texts, name: str) -> list[Event]:
    """Return the event of a dropped catalog."""
    return [Event(EventType.DROP_CATALOG, name, None, None, {"catalog": name})]


def database_created(texts: Texts, database: Database) -> list[Event]:
    """Return the event of a new database."""
    return [_of_database(EventType.CREATE_DATABASE, database.name, dbJson=texts.database(database))]


def database_altered(texts: Texts, before: Database, after: Database) -> list[Event]:
    """Return the event of an altered database."""
    objects = {"dbObjBeforeJson": texts.database(before), "dbObjAfterJson": texts.database(after)}
    return [_of_database(EventType.ALTER_DATABASE, before.name, **objects)]


def database_dropped(
    texts: Texts, database: Database, functions: Sequence[Function] = (), tables: Sequence[Table] = ()
) -> list[Event]:
    """Return the events of a dropped database: its functions and tables go before it."""
    return [
        *(event for function in functions for event in function_dropped(texts, function.name)),
        *(event for table in tables for event in table_dropped(texts, table)),
        _of_database(EventType.DROP_DATABASE, database.name, dbJson=texts.database(database)),
    ]


def function_created(texts: Texts, function: Function) -> list[Event]:
    """Return the event of a new function."""
    name = function.name.database
    return [_of_database(EventType.CREATE_FUNCTION, name, functionObjJson=texts.function(function))]


def function_dropped(_texts: Texts, name: TableName) -> list[Event]:
    """Return the event of a dropped function."""
    return [_of_database(EventType.DROP_FUNCTION, name.database, functionName=name.table)]


def connector_changed(kind: EventType, connector: str) -> list[Event]:
    """Return the event of a data connector, for which Hive has types of events and no message.

    Connectors belong to no catalog; readers find the event in the default one.
    """
    return [Event(kind, DEFAULT_CATALOG, None, None, {"connector": connector})]


# Tables


def table_created(texts: Texts, table: Table, files: Sequence[str] = ()) -> list[Event]:
    """Return the event of a new table. ``files``: files that it began with, for replicas."""
    return [_of_table(EventType.CREATE_TABLE, table, tableObjJson=_table_text(texts, table), files=list(files))]


def table_altered(texts: Texts, before: Table, after: Table, *, emptied: bool = False) -> list[Event]:
    """Return the event of an altered, renamed or ``emptied`` table."""
    was, now = texts.tables(before, after)
    return [
        _of_table(
            EventType.ALTER_TABLE,
            after,
            tableObjBeforeJson=was,
            tableObjAfterJson=now,
            isTruncateOp=_java(emptied),
            writeId=after.write_id,
        )
    ]


def table_dropped(texts: Texts, table: Table) -> list[Event]:
    """Return the event of a dropped table; its partitions have none of their own."""
    return [_of_table(EventType.DROP_TABLE, table, tableObjJson=_table_text(texts, table))]


# Partitions


def partitions_added(
    texts: Texts, table: Table, added: Sequence[Partition], files: Mapping[str, Sequence[str]] | None = None
) -> list[Event]:
    """Return the event of new partitions, one for all; none if none was added.

    ``files``: files that partitions began with, by name, for replicas.
    """
    if not added:
        return []
    return [
        _of_table(
            EventType.ADD_PARTITION,
            table,
            tableObjJson=_table_text(texts, table),
            partitions=[_key_values(table, partition.values) for partition in added],
            partitionListJson=texts.partitions(table.name, added),
            partitionFiles=[{"partitionName": name, "files": list(of)} for name, of in (files or {}).items()],
        )
    ]


def partitions_altered(
    texts: Texts,
    table: Table,
    pairs: Sequence[tuple[Partition, Partition]],
    *,
    emptied: bool = False,
    together: bool = False,
) -> list[Event]:
    """Return the events of altered, renamed or ``emptied`` partitions, given as they were and as they are.

    ``together``: some thousand partitions share an event, of a type that only Hive 4.1 and later know.
    """
    described = _table_text(texts, table)
    if together:
        return [
            _of_table(
                EventType.ALTER_PARTITIONS,
                table,
                tableObjJson=described,
                partitions=[_key_values(table, after.values) for _, after in some],
                partitionListJson=texts.partitions(table.name, [after for _, after in some]),
                isTruncateOp=_java(emptied),
                writeId=some[0][1].write_id,
            )
            for some in (pairs[at : at + IN_ONE_MESSAGE] for at in range(0, len(pairs), IN_ONE_MESSAGE))
        ]
    befores = texts.partitions(table.name, [before for before, _ in pairs])
    afters = befores if emptied else texts.partitions(table.name, [after for _, after in pairs])
    return [
        _of_table(
            EventType.ALTER_PARTITION,
            table,
            tableObjJson=described,
            keyValues=_key_values(table, before.values),
            partitionObjBeforeJson=was,
            partitionObjAfterJson=now,
            isTruncateOp=_java(emptied),
            writeId=after.write_id,
        )
        for (before, after), was, now in zip(pairs, befores, afters, strict=True)
    ]


def partitions_dropped(texts: Texts, table: Table, names: Sequence[str]) -> list[Event]:
    """Return the event of dropped partitions, one for all; none if none was dropped."""
    if not names:
        return []
    keys = table.partition_key_names
    values = [_key_values(table, values_for(keys, name) or ()) for name in names]
    return [_of_table(EventType.DROP_PARTITION, table, tableObjJson=_table_text(texts, table), partitions=values)]


def partitions_exchanged(texts: Texts, source: Table, target: Table, moved: Sequence[Partition]) -> list[Event]:
    """Return the events of partitions that moved to another table: one for the target, one for each partition left."""
    gone = [event for partition in moved for event in partitions_dropped(texts, source, [partition.name])]
    return [*partitions_added(texts, target, moved), *gone]


# Constraints, statistics, writes


def constraints_added(texts: Texts, added: Iterable[ConstraintColumn]) -> list[Event]:
    """Return the events of new constraints of a table, one for each kind. That of a foreign key names the parent."""
    order = list(_CONSTRAINTS)
    events = []
    for kind, group in groupby(sorted(added, key=lambda each: order.index(each.kind)), lambda each: each.kind):
        columns = list(group)
        name = columns[0].table if columns[0].reference is None else columns[0].reference.table
        label, key = _CONSTRAINTS[kind]
        events.append(Event(label, *name, {key: texts.constraints(kind, columns)}))
    return events


def constraint_dropped(_texts: Texts, table: TableName, constraint: str) -> list[Event]:
    """Return the event of a dropped constraint."""
    message = {"dbName": table.db, "tableName": table.table, "constraintName": constraint}
    return [Event(EventType.DROP_CONSTRAINT, *table, message)]


def statistics_updated(
    texts: Texts,
    table: Table,
    statistics: Sequence[ColumnStatistics],
    parameters: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Event]:
    """Return the events of stored statistics: one for the table, and one for each partition.

    ``parameters``: the present parameters of the table ("") and the partitions; None if they were not changed.
    """
    described, events = _table_text(texts, table), []
    by_place: dict[str, list[ColumnStatistics]] = {}
    for each in statistics:
        by_place.setdefault(each.partition, []).append(each)
    for partition, columns in by_place.items():
        message: dict[str, object] = {
            "writeId": table.write_id,
            "database": table.name.db,
            "colStatsJson": texts.statistics(table.name, partition, columns),
            "parameters": dict((parameters or {}).get(partition, {})),
            "tableObjJson": described,
        }
        kind = EventType.UPDATE_TABLE_STATISTICS
        if partition:
            kind = EventType.UPDATE_PARTITION_STATISTICS
            message["partVals"] = values_for(table.partition_key_names, partition)
        events.append(Event(kind, *table.name, message))
    return events


def statistics_deleted(_texts: Texts, table: Table, partition: str, columns: Sequence[str] | None) -> list[Event]:
    """Return the events of removed statistics: one for each column, or a single one if ``columns`` is None."""
    kind, more = EventType.DELETE_TABLE_STATISTICS, {}
    if partition:
        kind = EventType.DELETE_PARTITION_STATISTICS
        more = {"partName": partition, "partValues": values_for(table.partition_key_names, partition)}
    return [
        Event(kind, *table.name, {"database": table.name.db, "colName": column, **more})
        for column in ([None] if columns is None else columns)
    ]


def written(texts: Texts, table: Table, writes: Sequence[Written]) -> list[Event]:
    """Return the events of files that a client has put into a table, one for each place."""
    return [
        _of_table(
            EventType.INSERT,
            table,
            tableObjJson=_table_text(texts, table),
            ptnObjJson=_partition_text(texts, table, write.partition),
            replace=_java(write.replaces),
            files=list(write.files),
        )
        for write in writes
    ]


def reloaded(texts: Texts, table: Table, partitions: Sequence[Partition], *, refresh: bool) -> list[Event]:
    """Return the event of a client that read a table, or partitions, anew (``refresh``) or forgot them.

    One partition stands where Hive 4.0 has it, several where Hive 4.2 has them.
    """
    message: dict[str, object] = {
        "db": table.name.db,
        "table": table.name.table,
        "tableObjJson": _table_text(texts, table),
        "ptnObjJson": _partition_text(texts, table, partitions[0] if len(partitions) == 1 else None),
        "refreshEvent": _java(refresh),
    }
    if len(partitions) > 1:
        message["partitionListJson"] = texts.partitions(table.name, partitions)
    return [Event(EventType.RELOAD, *table.name, message)]


def _table_text(texts: Texts, table: Table) -> str:
    [text] = texts.tables(table)
    return text


def _of_database(kind: EventType, name: DatabaseName, **more: object) -> Event:
    return Event(kind, name.catalog, name.db, None, {"db": name.db, **more})


def _of_table(kind: EventType, table: Table, **more: object) -> Event:
    message = {"db": table.name.db, "table": table.name.table, "tableType": table.type, **more}
    return Event(kind, *table.name, message)


def _key_values(table: Table, values: Sequence[str]) -> dict[str, str]:
    return dict(zip(table.partition_key_names, values, strict=True))


def _partition_text(texts: Texts, table: Table, partition: Partition | None) -> str | None:
    return None if partition is None else texts.partitions(table.name, [partition])[0]


def _java(flag: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if flag else "false"
