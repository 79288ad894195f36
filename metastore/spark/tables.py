"""What Spark needs to know of a metastore table: kind, columns, partition keys, buckets, location; in Spark's types."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from pyspark.sql.types import DataType, StructField, StructType

from metastore.errors import InvalidOperationError
from metastore.ids import TableName

# Characters and varchars are plain strings inside files: Hive pads and cuts them when it reads (acid-format.md §4.3).
_STRING_LIKE = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)
_UNREADABLE = re.compile(r"\b(uniontype\s*<|timestamp with local time zone|interval_)", re.IGNORECASE)


class TableKind(StrEnum):
    """How the table's directories are to be understood."""

    FULL_ACID = "full ACID"
    INSERT_ONLY = "insert-only"
    PLAIN = "not transactional"


@dataclass(frozen=True)
class HiveColumn:
    """A column as the metastore has it: lower-case name and Hive type text."""

    name: str
    type: str

    @property
    def sql_type(self) -> str:
        """The type as Spark's SQL knows it; raises InvalidOperationError for a type that Spark does not have."""
        if _UNREADABLE.search(self.type):
            raise InvalidOperationError(f"Column {self.name} has type {self.type}, which Spark cannot hold. "
                                        "Read the table with Hive or leave the column out in a view.")
        return _STRING_LIKE.sub("string", self.type)

    def spark_type(self) -> DataType:
        """The same as a Spark type; raises as ``sql_type``."""
        return DataType.fromDDL(self.sql_type)


@dataclass(frozen=True)
class AcidTable:
    """A table of the metastore. Columns exclude partition keys; ``columns`` order is the order inside files."""

    name: TableName
    kind: TableKind
    location: str
    columns: tuple[HiveColumn, ...]
    partition_keys: tuple[HiveColumn, ...]
    bucket_columns: tuple[str, ...]
    bucket_count: int
    bucketing_version: int
    file_format: str
    parameters: dict[str, str]
    order: tuple[tuple[str, bool], ...] = ()
    """SORTED BY: columns, and whether they ascend."""

    @classmethod
    def of(cls, name: TableName, thrift_table: Any) -> "AcidTable":
        """The table as the metastore's ``get_table`` answered it."""
        sd, parameters = thrift_table.sd, dict(thrift_table.parameters or {})
        transactional = parameters.get("transactional", "").lower() == "true"
        insert_only = parameters.get("transactional_properties", "").lower() == "insert_only"
        kind = TableKind.PLAIN if not transactional else (
            TableKind.INSERT_ONLY if insert_only else TableKind.FULL_ACID)
        return cls(
            name=name, kind=kind, location=sd.location or "",
            columns=tuple(HiveColumn(c.name.lower(), c.type) for c in sd.cols or ()),
            partition_keys=tuple(HiveColumn(c.name.lower(), c.type) for c in thrift_table.partitionKeys or ()),
            bucket_columns=tuple(c.lower() for c in sd.bucketCols or ()),
            bucket_count=max(sd.numBuckets or 0, 0) if sd.bucketCols else 0,
            bucketing_version=2 if parameters.get("bucketing_version") == "2" else 1,
            file_format=_file_format(sd.inputFormat or ""), parameters=parameters,
            order=tuple((one.col.lower(), one.order == 1) for one in sd.sortCols or ()))

    @cached_property
    def row_type(self) -> StructType:
        """The struct ``row`` of the table's ACID files."""
        return _struct(self.columns)

    @cached_property
    def partition_type(self) -> StructType:
        """The partition keys, typed."""
        return _struct(self.partition_keys)

    @property
    def schema(self) -> StructType:
        """What a SELECT * shows: columns, then partition keys."""
        return StructType(self.row_type.fields + self.partition_type.fields)

    @property
    def partition_names(self) -> list[str]:
        """Names of the partition keys, in order."""
        return [key.name for key in self.partition_keys]

    def require(self, *kinds: TableKind, action: str) -> None:
        """Raise InvalidOperationError unless the table is of one of ``kinds``."""
        if self.kind not in kinds:
            allowed = " or ".join(kinds)
            advice = {
                TableKind.PLAIN: "Create it with TBLPROPERTIES ('transactional'='true') STORED AS ORC.",
                TableKind.INSERT_ONLY: "Its rows have no ids."}
            raise InvalidOperationError(f"{action} needs a {allowed} table, and {self.name} is {self.kind}. "
                                        f"{advice.get(self.kind, '')}".rstrip())


def quoted(name: str) -> str:
    """A column's name in Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def _struct(columns: Sequence[HiveColumn]) -> StructType:
    """Types are parsed by Spark's JVM: all of them by one call."""
    if not columns:
        return StructType([])
    parsed = StructType.fromDDL(", ".join(f"{quoted(one.name)} {one.sql_type}" for one in columns))
    return StructType([StructField(one.name, field.dataType) for one, field in zip(columns, parsed, strict=True)])


def _file_format(input_format: str) -> str:
    """Spark's name of the format behind a Hive input format class; "" if Spark has none."""
    known = {"OrcInputFormat": "orc", "MapredParquetInputFormat": "parquet", "AvroContainerInputFormat": "avro"}
    return known.get(input_format.rsplit(".", 1)[-1], "")
