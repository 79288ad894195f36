"""The constraints of a table in the metastore; its writers must keep those that are ENABLEd."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from thrift.Thrift import TApplicationException

from metastore.acid_tables.table import quoted
from metastore.catalog.model import ConstraintKind
from metastore.catalog.rules.expressions import refused_expression
from metastore.client.answers import is_undeclared, is_unknown_method
from metastore.client.client import MetastoreClient
from metastore.client.declared_constraints import FIELDS, Declaration, thrift_rows
from metastore.client.domain_client import DomainClient
from metastore.errors import InvalidOperationError, MetaError, MetastoreError
from metastore.ids import TableName

_ADDING = {
    ConstraintKind.NOT_NULL: ("add_not_null_constraint", "AddNotNullConstraintRequest"),
    ConstraintKind.DEFAULT: ("add_default_constraint", "AddDefaultConstraintRequest"),
    ConstraintKind.CHECK: ("add_check_constraint", "AddCheckConstraintRequest"),
    ConstraintKind.PRIMARY_KEY: ("add_primary_key", "AddPrimaryKeyRequest"),
    ConstraintKind.UNIQUE: ("add_unique_constraint", "AddUniqueConstraintRequest"),
    ConstraintKind.FOREIGN_KEY: ("add_foreign_key", "AddForeignKeyRequest"),
}
"""The metastore's call and its request for each kind."""


class RowRule(NamedTuple):
    """A condition that no written row may meet."""

    label: str
    broken: str
    """SQL over the table's columns; NULL: the row is right."""


class EnabledConstraints(NamedTuple):
    """The ENABLEd constraints of a table, with SQL as it was declared; and its primary key, which is never checked."""

    not_null: tuple[tuple[str, str], ...]
    """(name, column)."""

    checks: tuple[tuple[str, str], ...]
    """(name, condition)."""

    defaults: Mapping[str, str]
    """SQL by column."""

    primary_key: tuple[str, ...] = ()
    """Columns; empty without one."""

    @property
    def harmless_defaults(self) -> dict[str, str]:
        """The defaults that may be evaluated; a table with others cannot be written (`required`)."""
        return {column: value for column, value in self.defaults.items() if refused_expression(value) is None}

    def required(self, table: TableName) -> "EnabledConstraints":
        """Return the constraints if a writer may evaluate all of them. Raises: InvalidOperationError."""
        for what, text in (*self.checks, *self.defaults.items()):
            if (refused := refused_expression(text)) is not None:
                raise InvalidOperationError(
                    f"{table} cannot be written: the CHECK or DEFAULT {what} ({text}) would be evaluated, and "
                    f"{refused}. DROP CONSTRAINT it, and declare another."
                )
        return self

    def rules(self) -> tuple[RowRule, ...]:
        """Return the rules that every written row must meet."""
        return (
            *(RowRule(f"NOT NULL {name} ({column})", f"{quoted(column)} IS NULL") for name, column in self.not_null),
            *(RowRule(f"CHECK {name} ({condition})", f"NOT ({condition})") for name, condition in self.checks),
        )


def enabled_constraints(client: MetastoreClient, table: TableName) -> EnabledConstraints:
    """Return the present constraints of the metastore.

    None if an older Hive without constraints keeps the catalog.
    """
    constraints = all_constraints(client, table)
    if constraints is None:
        return EnabledConstraints((), (), {})
    return EnabledConstraints(
        tuple(
            (constraint.nn_name, constraint.column_name)
            for constraint in constraints.notNullConstraints
            if constraint.enable_cstr
        ),
        tuple(
            (constraint.dc_name, constraint.check_expression)
            for constraint in constraints.checkConstraints
            if constraint.enable_cstr
        ),
        {
            constraint.column_name: constraint.default_value
            for constraint in constraints.defaultConstraints
            if constraint.enable_cstr
        },
        tuple(part.column_name for part in sorted(constraints.primaryKeys or (), key=lambda part: int(part.key_seq))),
    )


def column_constraints(client: MetastoreClient, table: TableName, kind: ConstraintKind, column: str) -> list[str]:
    """Return the names of a column's NOT NULL or DEFAULT constraints."""
    constraints = all_constraints(client, table)
    rows = {
        ConstraintKind.NOT_NULL: [(row.column_name, row.nn_name) for row in constraints.notNullConstraints],
        ConstraintKind.DEFAULT: [(row.column_name, row.dc_name) for row in constraints.defaultConstraints],
    }
    return [name for of, name in rows[kind] if of == column]


def has_constraints(client: MetastoreClient, table: TableName) -> bool:
    """Return True if the metastore has any constraint of a table, enabled or not."""
    constraints = all_constraints(client, table)
    return constraints is not None and any(getattr(constraints, kind) for kind in FIELDS)


def add_constraints(client: DomainClient, table: TableName, declared: Sequence[Declaration]) -> None:
    """Add constraints to an existing table. Raises: InvalidOperationError for one that the metastore refuses."""
    with _refusals():
        for constraint in declared:
            method, request = _ADDING[constraint.kind]
            rows = thrift_rows(client.types, table, constraint)
            getattr(client, method)(getattr(client.types, request)(rows))


def drop_constraint(client: DomainClient, table: TableName, name: str) -> None:
    """Remove a constraint. Raises: InvalidOperationError for a name that the table does not have."""
    with _refusals():
        client.drop_constraint(client.types.DropConstraintRequest(table.db, table.table, name, table.catalog))


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except MetaError as refused:
        if is_undeclared(refused):
            raise InvalidOperationError(str(refused)) from refused
        raise


def all_constraints(client: MetastoreClient, table: TableName) -> Any:
    """Return the constraints as the metastore has them; None if it knows no constraints."""
    request = client.types.AllTableConstraintsRequest(table.db, table.table, table.catalog)
    try:
        return client.get_all_table_constraints(request).allTableConstraints
    except (TApplicationException, MetastoreError) as error:
        if not is_unknown_method(error):
            raise
        return None
