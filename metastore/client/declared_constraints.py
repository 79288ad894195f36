"""Constraints as they are declared: the arguments of the metastore's calls."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from metastore.catalog.model import ConstraintKind
from metastore.ids import TableName

_ARGUMENTS = (
    ConstraintKind.PRIMARY_KEY,
    ConstraintKind.FOREIGN_KEY,
    ConstraintKind.UNIQUE,
    ConstraintKind.NOT_NULL,
    ConstraintKind.DEFAULT,
    ConstraintKind.CHECK,
)
"""The order in which create_table_with_constraints takes them."""
FIELDS = (
    "primaryKeys",
    "foreignKeys",
    "uniqueConstraints",
    "notNullConstraints",
    "defaultConstraints",
    "checkConstraints",
)
"""The fields of Thrift's structs that hold them, in the same order."""


class Declaration(NamedTuple):
    """A constraint as a statement declares it; ``name`` is None if the metastore shall choose one."""

    kind: ConstraintKind
    name: str | None
    columns: tuple[str, ...] = ()
    value: str | None = None
    """The SQL of a DEFAULT or of a CHECK."""
    parent: tuple[str | None, str] | None = None
    """Database and table that a foreign key refers to."""
    parent_columns: tuple[str, ...] = ()
    is_enabled: bool = True
    is_relied_on: bool = True


def arguments(types: Any, table: TableName, declared: Sequence[Declaration]) -> list[list[Any]]:
    """Return the constraints of a table to be made, as ``create_table`` takes them.

    The answer is empty if none is declared.
    """
    if not declared:
        return []
    return [
        [row for constraint in declared if constraint.kind is kind for row in thrift_rows(types, table, constraint)]
        for kind in _ARGUMENTS
    ]


def thrift_rows(types: Any, table: TableName, constraint: Declaration) -> list[Any]:
    """Convert a declared constraint for the metastore's calls: to a row, or for a key to a row per column."""
    flags = {"enable_cstr": constraint.is_enabled, "validate_cstr": False, "rely_cstr": constraint.is_relied_on}
    of_table = {"table_db": table.db, "table_name": table.table, "catName": table.catalog, **flags}
    match constraint.kind:
        case ConstraintKind.NOT_NULL:
            return [types.SQLNotNullConstraint(column_name=constraint.columns[0], nn_name=constraint.name, **of_table)]
        case ConstraintKind.DEFAULT:
            return [
                types.SQLDefaultConstraint(
                    column_name=constraint.columns[0],
                    default_value=constraint.value,
                    dc_name=constraint.name,
                    **of_table,
                )
            ]
        case ConstraintKind.CHECK:
            return [
                types.SQLCheckConstraint(
                    column_name=constraint.columns[0] if constraint.columns else None,
                    check_expression=constraint.value,
                    dc_name=constraint.name,
                    **of_table,
                )
            ]
        case ConstraintKind.PRIMARY_KEY:
            return [
                types.SQLPrimaryKey(column_name=column, key_seq=number, pk_name=constraint.name, **of_table)
                for number, column in enumerate(constraint.columns, 1)
            ]
        case ConstraintKind.UNIQUE:
            return [
                types.SQLUniqueConstraint(column_name=column, key_seq=number, uk_name=constraint.name, **of_table)
                for number, column in enumerate(constraint.columns, 1)
            ]
        case ConstraintKind.FOREIGN_KEY:
            db, parent = constraint.parent or (None, "")
            pairs = zip(constraint.columns, constraint.parent_columns, strict=True)
            return [
                types.SQLForeignKey(
                    pktable_db=db or table.db,
                    pktable_name=parent,
                    pkcolumn_name=referenced,
                    fktable_db=table.db,
                    fktable_name=table.table,
                    fkcolumn_name=column,
                    key_seq=number,
                    update_rule=0,
                    delete_rule=0,
                    fk_name=constraint.name,
                    catName=table.catalog,
                    **flags,
                )
                for number, (column, referenced) in enumerate(pairs, 1)
            ]
