"""Tables as writers without Spark need them: columns in Arrow's types, keys, buckets and constraints.

Rule: tables are full ACID, or insert-only in ORC. Characters and varchars are plain strings inside files (Hive pads and
cuts when it reads); timestamps are wall clocks, which is what ORC holds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from metastore.acid.table_kinds import is_insert_only, is_transactional
from metastore.acid.types import parse_type
from metastore.client import DomainClient, MetastoreClient
from metastore.client.constraints import EnabledConstraints, enabled_constraints
from metastore.errors import InvalidOperationError
from metastore.ids import TableName, full_table_name
from metastore.streaming.columns import Column
from metastore.streaming.constraints import Rules

_NAMED_BY_TEXT = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "string", "char", "varchar", "date", "decimal")
)
"""Kinds of partition keys whose values have a single spelling."""


@dataclass(frozen=True)
class StreamTable:
    """A table; ``columns`` excludes the partition keys; the order is the order inside files."""

    name: TableName
    location: str
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    bucket_columns: tuple[Column, ...]
    bucket_count: int
    bucketing_version: int
    is_insert_only: bool
    rules: Rules

    @classmethod
    def of(cls, name: TableName, described: Any, constraints: EnabledConstraints) -> "StreamTable":
        """Return the table from the answer of the metastore's ``get_table``.

        Raises: InvalidOperationError if it is not transactional, or has a column or a constraint that cannot be written
        or kept here.
        """
        sd, parameters = described.sd, dict(described.parameters or {})
        _require_transactional(name, parameters, sd)

        def columns_of(fields: Any) -> tuple[Column, ...]:
            return tuple(
                Column(field.name.lower(), parse_type(field.type), constraints.defaults.get(field.name.lower()))
                for field in fields or ()
            )

        columns, keys = columns_of(sd.cols), columns_of(described.partitionKeys)
        by_name = {column.name: column for column in columns}
        buckets = max(sd.numBuckets or 0, 0) if sd.bucketCols else 0
        table = cls(
            name,
            sd.location,
            columns,
            keys,
            tuple(by_name[bucketcol.lower()] for bucketcol in sd.bucketCols or ()) if buckets else (),
            buckets,
            2 if parameters.get("bucketing_version") == "2" else 1,
            is_insert_only(parameters),
            Rules(constraints.not_null, constraints.checks),
        )
        for key in keys:
            if key.type.kind not in _NAMED_BY_TEXT:
                raise InvalidOperationError(
                    f"{name} is partitioned by {key.name}, a {key.type.kind}, whose values "
                    "have no one spelling: write the table with Hive or Spark."
                )
        # Columns and constraints that are not supported are refused here, before anything is opened.
        table.rules.require_sound(pa.schema([*table.row_type, *(pa.field(key.name, key.arrow) for key in keys)]))
        return table

    @cached_property
    def row_type(self) -> pa.StructType:
        """The struct ``row`` of the table's files."""
        return pa.struct([pa.field(column.name, column.arrow) for column in self.columns])


@contextmanager
def connected(
    table: str, uri: str | None, client: MetastoreClient | None
) -> Iterator[tuple[DomainClient, StreamTable]]:
    """Open a client, own or passed in, and the table ``db.table``; close the client when the block raises.

    Raises: InvalidOperationError, NoSuchObjectError, MetastoreUnreachableError.
    """
    own = DomainClient(uri) if client is None else DomainClient.like(client)
    try:
        name = full_table_name(table)
        described, constraints = own.get_table(name.db, name.table), enabled_constraints(own, name).required(name)
        yield own, StreamTable.of(name, described, constraints)
    except BaseException:
        own.close()
        raise


def _require_transactional(name: TableName, parameters: dict[str, str], sd: Any) -> None:
    if not is_transactional(parameters):
        raise InvalidOperationError(
            f"{name} is not transactional: create it STORED AS ORC with TBLPROPERTIES ('transactional'='true')."
        )
    if "Orc" not in (sd.inputFormat or ""):
        raise InvalidOperationError(f"{name} is not stored as ORC: write it with Spark.")
    if sd.sortCols:
        raise InvalidOperationError(f"{name} is SORTED BY columns, which a stream is not: write it with Spark.")
