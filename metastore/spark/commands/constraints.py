"""Constraints of a table from Spark's side: the metastore has their declarations, every write of ours enforces them.

Rules. Every row that a statement writes meets the ENABLEd NOT NULL and CHECK constraints, or nothing of the statement
is kept; a CHECK that is NULL holds. Violations are counted while the rows are written: no query runs twice. A column
that a statement leaves out gets its DEFAULT. Keys are declared, and not enforced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType
from sqlglot import exp, parse_one

from metastore.acid_tables.table import AcidTable, HiveColumn, TableKind
from metastore.catalog.model import ConstraintKind
from metastore.client import DomainClient
from metastore.client.answers import is_undeclared
from metastore.client.constraints import Rule, enabled_constraints
from metastore.client.declared_constraints import Declaration, thrift_rows
from metastore.errors import InvalidOperationError, MetaError
from metastore.ids import TableName
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import Insert, Merge, MergeBranch, Update
from metastore.spark.tables.spark_types import type_of

_ADDING = {
    ConstraintKind.NOT_NULL: ("add_not_null_constraint", "AddNotNullConstraintRequest"),
    ConstraintKind.DEFAULT: ("add_default_constraint", "AddDefaultConstraintRequest"),
    ConstraintKind.CHECK: ("add_check_constraint", "AddCheckConstraintRequest"),
    ConstraintKind.PRIMARY_KEY: ("add_primary_key", "AddPrimaryKeyRequest"),
    ConstraintKind.UNIQUE: ("add_unique_constraint", "AddUniqueConstraintRequest"),
    ConstraintKind.FOREIGN_KEY: ("add_foreign_key", "AddForeignKeyRequest"),
}
"""The metastore's call and its request for each kind."""


class ConstraintViolationError(InvalidOperationError):
    """Rows broke constraints of the table; nothing of the statement was kept."""


@dataclass(frozen=True)
class TableConstraints:
    """The ENABLEd constraints of a table."""

    table: TableName
    rules: tuple[Rule, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    """SQL by column."""

    @classmethod
    def of(cls, client: DomainClient, table: AcidTable) -> "TableConstraints":
        """The constraints that the metastore has now."""
        enabled = enabled_constraints(client, table.name)
        return cls(table.name, enabled.rules(), enabled.defaults)

    def in_insert(self, statement: Insert, columns: Sequence[str]) -> Insert:
        """The statement with each DEFAULT among its VALUES replaced; ``columns``: the values' columns, in order."""
        query = statement.query.copy()
        for values in query.find_all(exp.Values):
            for row in values.expressions:
                for name, value in zip(columns, row.expressions, strict=False):
                    if _is_default(value):
                        value.replace(self._default(name))
        return replace(statement, query=query)

    def in_update(self, statement: Update) -> Update:
        """The statement with each ``SET column = DEFAULT`` replaced."""
        return replace(statement, assignments=self._filled(statement.assignments))

    def in_merge(self, statement: Merge) -> Merge:
        """The statement with each DEFAULT replaced, and with the columns that its INSERTs leave out."""
        return replace(statement, branches=tuple(self._filled_branch(branch) for branch in statement.branches))

    def _filled_branch(self, branch: MergeBranch) -> MergeBranch:
        values = self._filled(branch.values)
        if branch.action == "insert" and values:
            values = {name: self._default(name) for name in self.defaults if name not in values} | values
        return replace(branch, values=values)

    def _filled(self, values: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
        return {name: self._default(name) if _is_default(value) else value for name, value in values.items()}

    def _default(self, column: str) -> exp.Expr:
        text = self.defaults.get(column)
        return exp.null() if text is None else parse_one(text, dialect=DIALECT)


class Watch:
    """Counts the rows that break a rule while they are written: ``over`` the rows, write, then ``require_kept``."""

    def __init__(self, constraints: TableConstraints) -> None:
        self._constraints = constraints
        self._observations: list[Observation] = []

    def over(self, rows: DataFrame, where: str = "true") -> DataFrame:
        """The same rows, for a single write. ``where``: SQL; only rows that meet it have to keep the rules."""
        if not self._constraints.rules:
            return rows
        self._observations.append(Observation())
        return rows.observe(self._observations[-1], *_counters(self._constraints.rules, where))

    def require_kept(self) -> None:
        """Raise ConstraintViolationError if the write, which is complete, broke a rule."""
        counts = [0] * len(self._constraints.rules)
        for observation in self._observations:
            # PySpark's own ``get`` fails when Spark has optimised the counting away, because there are no rows.
            watched: Any = observation._jo  # noqa: SLF001
            counted = watched.getRow()
            for number in range(counted.size()):
                counts[number] += counted.getLong(number)
        broken = [
            f"{rule.label} by {count} row{'s' if count > 1 else ''}"
            for rule, count in zip(self._constraints.rules, counts, strict=True)
            if count
        ]
        if broken:
            raise ConstraintViolationError(
                f"{self._constraints.table}: nothing was written, because rows break {'; '.join(broken)}."
            )


def require_sound(
    spark: SparkSession, table: TableName, columns: Sequence[HiveColumn], declared: Sequence[Declaration]
) -> None:
    """Raise InvalidOperationError for a DEFAULT or a CHECK with which no row could be written."""
    types = {column.name: column.sql_type for column in columns}
    none = spark.createDataFrame([], StructType([StructField(column.name, type_of(column)) for column in columns]))
    for constraint in declared:
        if unknown := [name for name in constraint.columns if name not in types]:
            raise InvalidOperationError(f"{table} has no column {unknown[0]}. It has: {', '.join(types)}.")
        try:
            if constraint.kind is ConstraintKind.DEFAULT:
                spark.sql(f"SELECT CAST({constraint.value} AS {types[constraint.columns[0]]})").collect()
            elif constraint.kind is ConstraintKind.CHECK:
                _ = none.select(*_counters([Rule("", f"NOT ({constraint.value})")])).schema
        except PySparkException as error:
            reason = (error.getMessage() or str(error)).splitlines()[0]
            raise InvalidOperationError(f"{constraint.kind.upper()} {constraint.value} of {table}: {reason}") from error


def add_constraints(
    spark: SparkSession,
    client: DomainClient,
    table: AcidTable,
    declared: Sequence[Declaration],
    column: tuple[str, str] | None,
) -> None:
    """Add constraints to an existing table; ``column``: name and type as CHANGE COLUMN repeats them.

    Raises: InvalidOperationError for another type than the column's, an unsound condition, or a refused constraint.
    """
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="A constraint")
    known = {column.name: column.type for column in (*table.columns, *table.partition_keys)}
    if column is not None and known.get(column[0], column[1]) != column[1]:
        raise InvalidOperationError(
            f"Column {column[0]} of {table.name} is {known[column[0]]}, not {column[1]}: "
            "change its type first, then add its constraint."
        )
    require_sound(spark, table.name, (*table.columns, *table.partition_keys), declared)
    try:
        _add(client, table.name, declared)
    except MetaError as refused:
        if is_undeclared(refused):
            raise InvalidOperationError(str(refused)) from refused
        raise


def drop_constraint(client: DomainClient, table: AcidTable, name: str) -> None:
    """Remove a constraint. Raises: InvalidOperationError for a name that the table does not have."""
    try:
        client.drop_constraint(
            client.types.DropConstraintRequest(table.name.db, table.name.table, name, table.name.catalog)
        )
    except MetaError as refused:
        if is_undeclared(refused):
            raise InvalidOperationError(str(refused)) from refused
        raise


def _add(client: DomainClient, table: TableName, declared: Sequence[Declaration]) -> None:
    for constraint in declared:
        method, request = _ADDING[constraint.kind]
        getattr(client, method)(getattr(client.types, request)(thrift_rows(client.types, table, constraint)))


def _counters(rules: Sequence[Rule], where: str = "true") -> list[Column]:
    return [
        F.count_if(F.expr(f"({rule.broken}) AND {where}")).alias(f"broken_{number}")
        for number, rule in enumerate(rules)
    ]


def _is_default(value: exp.Expr) -> bool:
    """Whether a value is the word DEFAULT."""
    if isinstance(value, exp.Var):
        return value.name.upper() == "DEFAULT"
    return (
        isinstance(value, exp.Column) and not value.table and not value.this.quoted and value.name.upper() == "DEFAULT"
    )
