"""What a streaming writer needs to know of a table: its columns in Arrow's types, its partition keys, its buckets.

Rule: only full ACID tables can be streamed into, as in Hive. Characters and varchars are plain strings inside files
(Hive pads and cuts when it reads); timestamps are wall clocks, which is what ORC holds.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from metastore.acid.types import HiveType, parse_type
from metastore.errors import InvalidOperationError
from metastore.ids import TableName

_ARROW = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "char": pa.string(), "varchar": pa.string(),
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us")}
_NAMED_BY_TEXT = frozenset((
    "boolean", "tinyint", "smallint", "int", "bigint", "string", "char", "varchar", "date", "decimal"))
"""Kinds of partition keys whose values have one spelling."""

_DECIMAL_DEFAULT = (10, 0)


@dataclass(frozen=True)
class Column:
    """A column or partition key."""

    name: str
    type: HiveType

    @cached_property
    def arrow(self) -> pa.DataType:
        """The type that its values have in Arrow and in the file."""
        return arrow_type(self.type, self.name)


@dataclass(frozen=True)
class StreamTable:
    """A full ACID table. ``columns`` excludes the partition keys; the order is the order inside files."""

    name: TableName
    location: str
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    bucket_columns: tuple[Column, ...]
    bucket_count: int
    bucketing_version: int

    @classmethod
    def of(cls, name: TableName, told: Any) -> "StreamTable":
        """The table as the metastore's ``get_table`` answered it.

        Raises: InvalidOperationError when it is not full ACID, or has a column that cannot be written here.
        """
        sd, parameters = told.sd, dict(told.parameters or {})
        _require_full_acid(name, parameters, sd.inputFormat or "")
        columns = tuple(Column(one.name.lower(), parse_type(one.type)) for one in sd.cols or ())
        keys = tuple(Column(one.name.lower(), parse_type(one.type)) for one in told.partitionKeys or ())
        by_name = {column.name: column for column in columns}
        buckets = max(sd.numBuckets or 0, 0) if sd.bucketCols else 0
        table = cls(name, sd.location, columns, keys,
                    tuple(by_name[one.lower()] for one in sd.bucketCols or ()) if buckets else (), buckets,
                    2 if parameters.get("bucketing_version") == "2" else 1)
        for key in keys:
            if key.type.kind not in _NAMED_BY_TEXT:
                raise InvalidOperationError(f"{name} is partitioned by {key.name}, a {key.type.kind}, whose values "
                                            "have no one spelling: write the table with Hive or Spark.")
        table.row_type  # noqa: B018 - refuses columns that cannot be written, before anything is opened
        return table

    @cached_property
    def row_type(self) -> pa.StructType:
        """The struct ``row`` of the table's files."""
        return pa.struct([pa.field(column.name, column.arrow) for column in self.columns])


def arrow_type(kind: HiveType, column: str) -> pa.DataType:
    """A Hive type as Arrow has it.

    Raises: InvalidOperationError.
    """
    match kind.kind:
        case "decimal":
            precision, scale = (*kind.arguments, *_DECIMAL_DEFAULT[len(kind.arguments):])
            return pa.decimal128(precision, scale)
        case "array":
            return pa.list_(arrow_type(kind.children[0], column))
        case "map":
            return pa.map_(*(arrow_type(child, column) for child in kind.children))
        case "struct":
            return pa.struct([pa.field(name.lower(), arrow_type(child, column))
                              for name, child in zip(kind.names, kind.children, strict=True)])
        case name if name in _ARROW:
            return _ARROW[name]
        case name:
            raise InvalidOperationError(f"Column {column} is a {name}, which cannot be written here: use Hive.")


def _require_full_acid(name: TableName, parameters: dict[str, str], input_format: str) -> None:
    if parameters.get("transactional", "").lower() != "true":
        raise InvalidOperationError(f"{name} is not transactional: create it STORED AS ORC with TBLPROPERTIES "
                                    "('transactional'='true').")
    if parameters.get("transactional_properties", "").lower() == "insert_only" or "Orc" not in input_format:
        raise InvalidOperationError(f"{name} is insert-only, and only full ACID tables (ORC) can be streamed into.")
