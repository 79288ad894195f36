"""The statements that are ours, as values: their parts as sqlglot trees. Module ``parsing`` makes them of SQL text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from sqlglot import exp, parse_one

from metastore.acid_tables.table import ColumnDefinition
from metastore.client.declared_constraints import Declaration
from metastore.errors import InvalidOperationError
from metastore.spark.sql.conditions import Conditions, conditions_of
from metastore.spark.sql.dialect import DIALECT


class TableRef(NamedTuple):
    """A table as the statement names it; ``db`` is None where it leaves the database out.

    ``version``: its VERSION AS OF or TIMESTAMP AS OF. ``conditions``: those that its rows must meet.
    """

    db: str | None
    table: str
    version: exp.Version | None = None
    conditions: Conditions | None = None

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.db}.{self.table}" if self.db else self.table


def dotted(text: str) -> TableRef:
    """A table's name as it is written: ``db.table`` or ``table``, quoted or not."""
    db, _, table = text.replace("`", "").lower().rpartition(".")
    return TableRef(db or None, table)


@dataclass(frozen=True)
class Query:
    """SELECT or WITH."""

    tree: exp.Expr


@dataclass(frozen=True)
class Insert:
    """INSERT INTO or OVERWRITE; ``partition`` maps a key to its literal's SQL, or to None when it is dynamic."""

    table: TableRef
    query: exp.Expr
    columns: tuple[str, ...] = ()
    partition: dict[str, str | None] = field(default_factory=dict)
    overwrite: bool = False
    by_name: bool = False
    """Whether the query's columns are matched by their names, not by their places."""

    def over(self, query: str) -> str:
        """The statement's text with ``query`` in the place of its own."""
        text = f"INSERT {'OVERWRITE' if self.overwrite else 'INTO'} TABLE {self.table}"
        if self.partition:
            keys = (f"`{key}`" if value is None else f"`{key}` = {value}" for key, value in self.partition.items())
            text += f" PARTITION ({', '.join(keys)})"
        if self.columns:
            text += f" ({', '.join(f'`{name}`' for name in self.columns)})"
        if self.by_name:
            text += " BY NAME"
        return f"{text} {query}"


@dataclass(frozen=True)
class MultiInsert:
    """FROM source INSERT ... INSERT ...: the SELECTs of ``inserts`` have no FROM and call the source ``alias``.

    ``joined``: names of the tables that FROM joins; a row of ``source`` has one struct for each then.
    """

    source: exp.Expr
    alias: str
    inserts: tuple[Insert, ...]
    joined: tuple[str, ...] = ()


@dataclass(frozen=True)
class Update:
    """UPDATE: ``assignments`` maps a column to its new value."""

    table: TableRef
    alias: str
    assignments: dict[str, exp.Expr]
    where: exp.Expr | None

    @property
    def conditions(self) -> Conditions:
        """What a row must meet to be changed."""
        return conditions_of(self.where, self.alias)


@dataclass(frozen=True)
class Delete:
    """DELETE."""

    table: TableRef
    alias: str
    where: exp.Expr | None

    @property
    def conditions(self) -> Conditions:
        """What a row must meet to be removed."""
        return conditions_of(self.where, self.alias)


@dataclass(frozen=True)
class MergeBranch:
    """One WHEN: ``matched`` and ``by_source`` say when; ``action``: update, delete or insert; no ``values``: ``*``.

    ``in_order``: what an INSERT gives without naming columns, for all of the table's (``named`` makes it ``values``).
    """

    matched: bool
    by_source: bool
    condition: exp.Expr | None
    action: str
    values: dict[str, exp.Expr]
    in_order: tuple[exp.Expr, ...] = ()

    def named(self, columns: Sequence[str]) -> "MergeBranch":
        """The branch with a column for each value. Raises: InvalidOperationError if there are not as many."""
        if not self.in_order:
            return self
        if len(self.in_order) != len(columns):
            raise InvalidOperationError(
                f"MERGE: INSERT gives {len(self.in_order)} values, and the table has "
                f"{len(columns)} columns: {', '.join(columns)}."
            )
        return replace(self, values=dict(zip(columns, self.in_order, strict=True)), in_order=())


@dataclass(frozen=True)
class Merge:
    """MERGE INTO ... USING source ON condition WHEN ..."""

    table: TableRef
    alias: str
    source: exp.Expr
    source_alias: str
    on: exp.Expr
    branches: tuple[MergeBranch, ...]

    def named(self, columns: Sequence[str]) -> "Merge":
        """The statement with a column for each value; ``columns``: the table's, partition keys last."""
        return replace(self, branches=tuple(branch.named(columns) for branch in self.branches))

    @property
    def conditions(self) -> Conditions:
        """What a row of the target must meet to matter: ON, unless some branch is for rows that nothing matches."""
        return conditions_of(None if any(branch.by_source for branch in self.branches) else self.on, self.alias)


@dataclass(frozen=True)
class Truncate:
    """TRUNCATE TABLE, or those of its partitions that have these values, as SQL."""

    table: TableRef
    partition: dict[str, str] = field(default_factory=dict)

    @property
    def conditions(self) -> Conditions:
        """What a row must meet to be removed."""
        literals = ((key, parse_one(value, dialect=DIALECT)) for key, value in self.partition.items())
        return Conditions(tuple(exp.column(key).eq(value) for key, value in literals), frozenset({""}))


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE of a transactional table; ``query`` for CREATE TABLE ... AS SELECT."""

    table: TableRef
    columns: tuple[tuple[str, str, str | None], ...]
    partition_columns: tuple[tuple[str, str, str | None], ...]
    bucket_columns: tuple[str, ...]
    bucket_count: int
    properties: dict[str, str]
    location: str | None
    comment: str | None
    if_not_exists: bool
    query: exp.Expr | None
    file_format: str = "orc"
    constraints: tuple[Declaration, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    """SORTED BY: columns, and whether they ascend."""
    serde: str | None = None
    """The class of ROW FORMAT SERDE."""
    serde_parameters: dict[str, str] = field(default_factory=dict)
    """Those of ROW FORMAT DELIMITED too."""
    classes: tuple[str, str] | None = None
    """Those of STORED AS INPUTFORMAT ... OUTPUTFORMAT ...."""


@dataclass(frozen=True)
class CreateLike:
    """CREATE TABLE ... LIKE: ``table`` gets the columns, the storage and the kind of ``source``, and no rows."""

    table: TableRef
    source: TableRef
    if_not_exists: bool
    location: str | None
    properties: dict[str, str]


@dataclass(frozen=True)
class Convert:
    """ALTER TABLE ... SET TBLPROPERTIES with ``transactional`` among the properties."""

    table: TableRef
    properties: dict[str, str]


@dataclass(frozen=True)
class ChangeColumn:
    """ALTER TABLE ... CHANGE COLUMN and its kin. ``after``: None stays where it is, "" comes first."""

    table: TableRef
    old: str
    name: str
    type: str = ""
    comment: str | None = None
    after: str | None = None
    cascade: bool = False


@dataclass(frozen=True)
class AddColumns:
    """ALTER TABLE ... ADD COLUMNS."""

    table: TableRef
    columns: tuple[ColumnDefinition, ...]
    cascade: bool = False


@dataclass(frozen=True)
class ReplaceColumns:
    """ALTER TABLE ... REPLACE COLUMNS."""

    table: TableRef
    columns: tuple[ColumnDefinition, ...]
    cascade: bool = False


@dataclass(frozen=True)
class DropColumns:
    """ALTER TABLE ... DROP COLUMN."""

    table: TableRef
    names: tuple[str, ...]
    cascade: bool = False


@dataclass(frozen=True)
class AddConstraints:
    """ALTER TABLE ... ADD CONSTRAINT, or CHANGE COLUMN with constraints; ``column``: (name, type) that it repeats."""

    table: TableRef
    constraints: tuple[Declaration, ...]
    column: tuple[str, str] | None = None


@dataclass(frozen=True)
class DropConstraint:
    """ALTER TABLE ... DROP CONSTRAINT."""

    table: TableRef
    name: str


@dataclass(frozen=True)
class Compact:
    """ALTER TABLE ... [PARTITION (...)] COMPACT 'kind' [AND WAIT] and so on. ``order``: the words from ORDER BY on."""

    table: TableRef
    partition: dict[str, str]
    kind: str
    wait: bool
    buckets: int | None = None
    order: str | None = None
    pool: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShowCompactions:
    """SHOW COMPACTIONS; ``order``: the words behind ORDER BY."""

    id: int | None = None
    database: str | None = None
    table: TableRef | None = None
    partition: dict[str, str] = field(default_factory=dict)
    pool: str | None = None
    kind: str | None = None
    state: str | None = None
    order: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class AbortCompactions:
    """ABORT COMPACTIONS id ..."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Show:
    """SHOW TRANSACTIONS | LOCKS."""

    what: str


@dataclass(frozen=True)
class AbortTransactions:
    """ABORT TRANSACTIONS id ..."""

    txn_ids: tuple[int, ...]


@dataclass(frozen=True)
class PlainOnly:
    """Something that Spark does to a table, and that must not be done to a transactional one, for this ``reason``."""

    table: TableRef
    reason: str


@dataclass(frozen=True)
class PassThrough:
    """Nothing of ours. ``tree``: of a CREATE TABLE or VIEW or a CACHE TABLE, which may read tables of ours.

    ``takes``: the table that it drops or renames, or of which it drops or renames partitions: nobody may read it then.
    """

    tree: exp.Expr | None = field(default=None, compare=False)
    takes: TableRef | None = None


Statement: TypeAlias = (
    Query
    | Insert
    | MultiInsert
    | Update
    | Delete
    | Merge
    | Truncate
    | CreateTable
    | CreateLike
    | Convert
    | AddConstraints
    | DropConstraint
    | AddColumns
    | ChangeColumn
    | ReplaceColumns
    | DropColumns
    | Compact
    | ShowCompactions
    | AbortCompactions
    | Show
    | AbortTransactions
    | PlainOnly
    | PassThrough
)
