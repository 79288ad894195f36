"""The constraints that the writers of a table must keep: those that are ENABLEd."""

from collections.abc import Mapping
from typing import NamedTuple

from thrift.Thrift import TApplicationException

from metastore.acid_tables.table import quoted
from metastore.client.answers import is_unknown_method
from metastore.client.client import MetastoreClient
from metastore.errors import MetastoreError
from metastore.ids import TableName


class Rule(NamedTuple):
    """A condition that no row may meet which is written."""

    label: str
    broken: str
    """SQL over the table's columns; NULL: the row is right."""


class EnabledConstraints(NamedTuple):
    """The ENABLEd constraints of a table; SQL as it was declared. And its primary key, which nobody checks."""

    not_null: tuple[tuple[str, str], ...]
    """(name, column)."""

    checks: tuple[tuple[str, str], ...]
    """(name, condition)."""

    defaults: Mapping[str, str]
    """SQL by column."""

    primary_key: tuple[str, ...] = ()
    """Columns; empty without one."""

    def rules(self) -> tuple[Rule, ...]:
        """What every row that is written must keep."""
        return (
            *(Rule(f"NOT NULL {name} ({column})", f"{quoted(column)} IS NULL") for name, column in self.not_null),
            *(Rule(f"CHECK {name} ({condition})", f"NOT ({condition})") for name, condition in self.checks),
        )


def enabled_constraints(client: MetastoreClient, table: TableName) -> EnabledConstraints:
    """The constraints that the metastore has now; none where an older Hive keeps the catalog, and knows of none."""
    request = client.types.AllTableConstraintsRequest(table.db, table.table, table.catalog)
    try:
        constraints = client.get_all_table_constraints(request).allTableConstraints
    except (TApplicationException, MetastoreError) as error:
        if not is_unknown_method(error):
            raise
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
