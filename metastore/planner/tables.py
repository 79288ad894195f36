"""Descriptions of tables for an engine, and the check that its known definition still holds.

Rules: the kind comes first, since a planner plans only transactional tables. Engines read a definition before they have
the table's locks, and may wait long for these. Files name their columns: a statement that writes or reads by a replaced
definition would lose values silently, so it is refused, and succeeds the next time.
"""

from collections.abc import Sequence
from typing import Any

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.conjunction import conjunction
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.table import AcidTable, FileFormat, HiveColumn
from metastore.client import DomainClient, WriteConflictError
from metastore.client.constraints import EnabledConstraints, enabled_constraints
from metastore.client.partitions import partition_places
from metastore.errors import InvalidInputError, NoSuchObjectError
from metastore.ids import TableName
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall

_KINDS = {TableKind.FULL_ACID: "full_acid", TableKind.INSERT_ONLY: "insert_only", TableKind.PLAIN: "plain"}
_PAIR = 2
SERDE = "serde"
"""The name of formats that only Hive's own classes read."""


def table(call: PlannerCall) -> Answer:
    """Return a table: its kind and, for a transactional table, everything that an engine needs."""
    name = call.body.db_and_table()
    try:
        thrift_table = call.client.get_table(name.db, name.table)
    except NoSuchObjectError:
        return {"kind": "absent"}
    if thrift_table.tableType == "VIRTUAL_VIEW":
        return {"kind": "view"}
    acid_table = AcidTable.of(name, thrift_table)
    if acid_table.kind is TableKind.PLAIN:
        return {"kind": "plain"}
    return described(acid_table, thrift_table, enabled_constraints(call.client, name))


def table_at(call: PlannerCall) -> Answer:
    """Return the transactional table whose directory is a place, holds it or lies in it; None if there is none."""
    return {"table": call.client.metastore_table_at(call.body.text("place")) or None}


def partitions(call: PlannerCall) -> Answer:
    """Return the partitions of a table, or the partitions that may hold rows for a filter."""
    wanted = acid_table(call.client, call.body.db_and_table())
    where = conjunction(call.body.values("filter"), wanted.partition_keys)
    return {"partitions": [_place(place) for place in partition_places(call.client, wanted, where)]}


def acid_table(client: DomainClient, name: TableName) -> AcidTable:
    """Return a transactional table. Raises: NoSuchObjectError; InvalidOperationError for any other table."""
    transactional = AcidTable.of(name, client.get_table(name.db, name.table))
    transactional.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="Planning")
    return transactional


def format_of(stored_as: FileFormat) -> str:
    """Return the format's name in the protocol."""
    return SERDE if isinstance(stored_as, HiveStorage) else stored_as


def described(acid_table: AcidTable, thrift_table: Any, constraints: EnabledConstraints) -> Answer:
    """Return everything that an engine needs of a transactional table."""
    parameters = acid_table.parameters
    comments = {
        field.name.lower(): field.comment
        for field in (*(thrift_table.sd.cols or ()), *(thrift_table.partitionKeys or ()))
    }

    def columns(wanted: Sequence[HiveColumn]) -> list[Answer]:
        return [_column(column, comments.get(column.name), constraints) for column in wanted]

    stored_as = acid_table.file_format
    return {
        "kind": _KINDS[acid_table.kind],
        "id": f"{thrift_table.id or 0}-{thrift_table.createTime or 0}",
        "location": acid_table.location,
        "columns": columns(acid_table.columns),
        "partition_keys": columns(acid_table.partition_keys),
        "primary_key": list(constraints.primary_key),
        "buckets": {
            "count": acid_table.bucket_count,
            "columns": list(acid_table.bucket_columns),
            "sort": [[name, "asc" if ascends else "desc"] for name, ascends in acid_table.order],
            "version": acid_table.bucketing_version,
        },
        "format": format_of(stored_as),
        "storage": stored_as.text() if isinstance(stored_as, HiveStorage) else None,
        "properties": parameters,
        "comment": parameters.get("comment"),
        "owner": thrift_table.owner or "",
        "statistics": {"rows": _count(parameters.get("numRows")), "bytes": _count(parameters.get("totalSize"))},
    }


def _column(column: HiveColumn, comment: str | None, constraints: EnabledConstraints) -> Answer:
    return {
        "name": column.name,
        "type": column.type,
        "sql_type": column.sql_type,
        "comment": comment,
        "default": constraints.harmless_defaults.get(column.name),
        "not_null": any(name == column.name for _, name in constraints.not_null),
    }


def _place(place: PartitionPlace) -> Answer:
    return {"name": place.name, "values": list(place.values), "location": place.location}


def _count(text: str | None) -> int | None:
    """Return a statistic; None if there is none."""
    return int(text) if text is not None and text.isdecimal() else None


def definition(table: AcidTable) -> dict[str, Any]:
    """Return the definition that decides about the files of a table, in the form of the field ``known``."""
    return {
        "columns": _typed(table.columns),
        "partition_keys": _typed(table.partition_keys),
        "buckets": [table.bucket_count, *table.bucket_columns],
    }


def require_known(table: AcidTable, body: Body) -> None:
    """Raise WriteConflictError if the table differs from the one that the caller knows, if it names one.

    A caller that writes sends all of ``known``; one that reads sends only its columns.
    """
    if body.has("known") and (known := body.body("known")).fields != definition(table):
        raise _changed(table, _pairs(known))
    if body.has("columns"):
        now = [*_typed(table.columns), *_typed(table.partition_keys)]
        if gone := [column for column in _pairs(body) if column not in now]:
            raise _changed(table, gone)


def _pairs(body: Body) -> list[list[str]]:
    """Read the field ``columns``. Raises: InvalidInputError."""
    columns = body.values("columns")
    if not all(
        isinstance(column, list) and len(column) == _PAIR and all(isinstance(part, str) for part in column)
        for column in columns
    ):
        raise InvalidInputError(f'{body.place}columns must be a list of [name, type], like ["id", "int"].')
    return columns


def _typed(columns: Sequence[HiveColumn]) -> list[list[str]]:
    return [[column.name, column.type] for column in columns]


def _changed(table: AcidTable, known: Sequence[Sequence[str]]) -> WriteConflictError:
    had = ", ".join(" ".join(column) for column in known)
    has = ", ".join(f"{column.name} {column.type}" for column in (*table.columns, *table.partition_keys))
    return WriteConflictError(
        f"{table.name} was altered or replaced after this statement had begun with its columns ({had}): now it has "
        f"({has}). Nothing was written. Run the statement again; a DataFrame is to be made anew.",
        0,
    )
