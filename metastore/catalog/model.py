"""The catalog's objects as values, which services take and return and stores keep.

Rule: names are lower case and never absent. A storage descriptor and a column list are JSON with Thrift's field names
(``cols``, ``serdeInfo``, ...), complete after ``rules.descriptors.normalised``; ``sd["location"]`` holds the location.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from metastore.ids import DatabaseName, TableName

Json = dict[str, Any]
Parameters = dict[str, str]
USER, ROLE = 1, 2  # PrincipalType on the wire


class TableType(StrEnum):
    """Hive's table types; the value is both the stored and the wire text."""

    MANAGED = "MANAGED_TABLE"
    EXTERNAL = "EXTERNAL_TABLE"
    VIEW = "VIRTUAL_VIEW"
    MATERIALIZED_VIEW = "MATERIALIZED_VIEW"
    INDEX = "INDEX_TABLE"


@dataclass(frozen=True)
class Catalog:
    """A catalog: a namespace of databases."""

    name: str
    location: str
    description: str | None = None
    create_time: int = 0
    given_location: str | None = None
    """The location as a client gave it."""


@dataclass(frozen=True)
class Database:
    """A database and the directory below which its tables go."""

    name: DatabaseName
    location: str
    description: str | None = None
    managed_location: str | None = None
    parameters: Parameters = field(default_factory=dict)
    owner: str | None = None
    owner_type: int | None = None
    create_time: int = 0
    connector: str | None = None
    """The data connector of a database of type REMOTE; None: the database is of type NATIVE."""
    remote_name: str | None = None
    """The name of a REMOTE database where its tables are."""


@dataclass(frozen=True)
class Table:
    """A table or view."""

    name: TableName
    sd: Json
    type: str = TableType.MANAGED
    owner: str | None = None
    owner_type: int | None = None
    create_time: int = 0
    last_access_time: int = 0
    retention: int = 0
    partition_keys: list[Json] = field(default_factory=list)
    parameters: Parameters = field(default_factory=dict)
    view_original_text: str | None = None
    view_expanded_text: str | None = None
    rewrite_enabled: bool = False
    creation_metadata: Json | None = None
    write_id: int = -1
    id: int = 0

    @property
    def location(self) -> str | None:
        """The location of the table's data; None for a view."""
        return self.sd.get("location")

    @property
    def partition_key_names(self) -> list[str]:
        """The names of the partition keys, in order."""
        return [key["name"] for key in self.partition_keys]


@dataclass(frozen=True)
class Function:
    """A user-defined function."""

    name: TableName
    class_name: str
    owner: str | None = None
    owner_type: int | None = None
    type: int = 1
    create_time: int = 0
    resource_uris: list[Json] = field(default_factory=list)


class StatisticsOrigin(NamedTuple):
    """The state of a transactional table that statistics describe.

    ``write_id``: the last write id that is counted; None if it is unknown. ``is_whole``: no lower write id was open
    when they were counted, so the statistics cover the whole state.
    """

    write_id: int | None = None
    is_whole: bool = False


NO_ORIGIN = StatisticsOrigin()


@dataclass(frozen=True)
class ColumnStatistics:
    """The statistics of a column, of a table or of a partition (``partition`` is not "")."""

    column: str
    type: str | None
    data: Json
    partition: str = ""
    engine: str = "hive"
    last_analyzed: int = 0
    origin: StatisticsOrigin = NO_ORIGIN


class ConstraintKind(StrEnum):
    """The kinds of constraints; the value is the stored text."""

    PRIMARY_KEY = "primary_key"
    FOREIGN_KEY = "foreign_key"
    UNIQUE = "unique"
    NOT_NULL = "not_null"
    DEFAULT = "default"
    CHECK = "check"


@dataclass(frozen=True)
class Reference:
    """The column that a column of a foreign key refers to."""

    table: TableName
    column: str
    key: str | None = None
    """The name of the primary or unique key that the column belongs to."""
    update_rule: int = 0
    delete_rule: int = 0


@dataclass(frozen=True)
class ConstraintColumn:
    """One column of a constraint; a key of several columns is several of these with one name."""

    table: TableName
    kind: ConstraintKind
    name: str
    """Empty as long as it is for the metastore to choose."""
    column: str | None
    position: int = 1
    value: str | None = None
    """The text of a DEFAULT or of a CHECK."""
    is_enabled: bool = False
    is_validated: bool = False
    is_relied_on: bool = False
    reference: Reference | None = None
