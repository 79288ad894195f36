"""Tables of the metastore as readers need them: kind, columns, partition keys, buckets, location. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from metastore.acid.table_kinds import TableKind, table_kind
from metastore.acid_tables.serde_storage import HiveStorage, seen_columns, without_lengths
from metastore.errors import InvalidOperationError
from metastore.ids import TableName

_UNREADABLE = re.compile(r"\b(uniontype\s*<|timestamp with local time zone|interval_)", re.IGNORECASE)
OURS = "__acid_"
"""The prefix of the columns that a plan or a staging directory has beside the table's own."""

FileFormat: TypeAlias = str | HiveStorage
"""How files are stored: by Spark's name (``orc``, ``parquet``), or by Hive's classes; "": unknown."""


@dataclass(frozen=True)
class HiveColumn:
    """A column as the metastore has it: lower-case name and Hive type text."""

    name: str
    type: str

    @property
    def sql_type(self) -> str:
        """The type in Spark's SQL. Raises: InvalidOperationError for a type that Spark does not have."""
        if _UNREADABLE.search(self.type):
            raise InvalidOperationError(
                f"Column {self.name} has type {self.type}, which Spark cannot hold. "
                "Read the table with Hive or leave the column out in a view."
            )
        return without_lengths(self.type)


@dataclass(frozen=True)
class ColumnDefinition:
    """A column as DDL has it. ``type``: Hive's, "" if the statement gives none."""

    name: str
    type: str
    comment: str | None = None


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
    file_format: FileFormat
    parameters: dict[str, str]
    order: tuple[tuple[str, bool], ...] = ()
    """SORTED BY: columns, and whether they ascend."""

    @classmethod
    def of(cls, name: TableName, thrift_table: Any) -> "AcidTable":
        """Return a table from the answer of the metastore's ``get_table``.

        Raises: InvalidOperationError for a transactional table with a column whose name begins with ``OURS``.
        """
        sd, parameters = thrift_table.sd, dict(thrift_table.parameters or {})
        kind = table_kind(parameters)
        serde = sd.serdeInfo.serializationLib if sd.serdeInfo else None
        columns = seen_columns(serde or "", [(c.name.lower(), c.type) for c in sd.cols or ()])
        keys = tuple(HiveColumn(c.name.lower(), c.type) for c in thrift_table.partitionKeys or ())
        if kind is not TableKind.PLAIN:
            require_user_names(name, [*(column for column, *_ in columns), *(key.name for key in keys)])
        return cls(
            name=name,
            kind=kind,
            location=sd.location or "",
            columns=tuple(HiveColumn(*column) for column in columns),
            partition_keys=keys,
            bucket_columns=tuple(c.lower() for c in sd.bucketCols or ()),
            bucket_count=max(sd.numBuckets or 0, 0) if sd.bucketCols else 0,
            bucketing_version=2 if parameters.get("bucketing_version") == "2" else 1,
            file_format=stored_as(sd, columns, parameters),
            parameters=parameters,
            order=tuple((column.col.lower(), column.order == 1) for column in sd.sortCols or ()),
        )

    @property
    def partition_names(self) -> list[str]:
        """The names of the partition keys, in order."""
        return [key.name for key in self.partition_keys]

    def stored_as(self, sd: Any) -> FileFormat:
        """Return the format of files below the storage descriptor ``sd``, a partition's for instance."""
        return stored_as(sd, [(column.name, column.type) for column in self.columns], self.parameters)

    def require(self, *kinds: TableKind, action: str) -> None:
        """Raise InvalidOperationError unless the table's kind is among ``kinds``.

        ``action``: the action that needs it.
        """
        if self.kind not in kinds:
            allowed = " or ".join(kinds)
            advice = {
                TableKind.PLAIN: "Create it with TBLPROPERTIES ('transactional'='true') STORED AS ORC.",
                TableKind.INSERT_ONLY: "Its rows have no ids.",
            }
            raise InvalidOperationError(
                f"{action} needs a {allowed} table, and {self.name} is {self.kind}. "
                f"{advice.get(self.kind, '')}".rstrip()
            )


def require_user_names(table: TableName, columns: Iterable[str]) -> None:
    """Raise InvalidOperationError for a column of a transactional table whose name begins with ``OURS``."""
    if taken := next((name for name in columns if name.startswith(OURS)), None):
        raise InvalidOperationError(
            f"{table} has a column {taken}, and names that begin with {OURS} are reserved. "
            "Choose another name, or rename the column in Hive."
        )


def quoted(name: str) -> str:
    """Quote a column's name for Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def stored_as(sd: Any, columns: Sequence[tuple[str, str]], parameters: Mapping[str, str]) -> FileFormat:
    """Return the format of files below the storage descriptor ``sd``; columns and parameters are the table's."""
    known = {"OrcInputFormat": "orc", "MapredParquetInputFormat": "parquet"}
    if (name := known.get((sd.inputFormat or "").rsplit(".", 1)[-1])) is not None:
        return name
    is_known = sd.inputFormat and sd.serdeInfo and sd.serdeInfo.serializationLib
    return HiveStorage.of(sd, columns, parameters) if is_known else ""
