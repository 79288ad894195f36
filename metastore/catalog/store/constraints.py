"""Rows of ``table_constraints``: a row for each column of a constraint.

A change of constraints holds the table's row; readers never wait. Constraints go with their table, and a foreign key
with the table that it refers to (ON DELETE CASCADE); both follow renames, because they hold the tables' ids.
"""

from collections.abc import Mapping, Sequence

from psycopg2.errors import UniqueViolation

from metastore.catalog.model import ConstraintColumn, ConstraintKind, Reference, Table
from metastore.db.engine import PgTx, Row
from metastore.errors import MetaError
from metastore.ids import TableName

_SELECT = (
    'SELECT t.catalog, t.db, t.name, c.kind, c.name, c."column", c.position, c.value, c.is_enabled, '
    "c.is_validated, c.is_relied_on, p.catalog, p.db, p.name, c.parent_column, c.parent_key, c.update_rule, "
    "c.delete_rule FROM tables AS t JOIN table_constraints AS c ON c.table_id = t.id AND c.kind = ANY(%s) "
    "LEFT JOIN tables AS p ON p.id = c.parent_id WHERE {where} ORDER BY t.db, t.name, c.name, c.position"
)
_NAMED = "t.catalog = %s AND t.db = %s AND t.name = %s"
SELECT_CONSTRAINTS = _SELECT.format(where=_NAMED)
SELECT_FOREIGN_KEYS = _SELECT.format(
    where="t.catalog = %s AND (%s::text IS NULL OR t.db = %s) AND (%s::text IS NULL OR t.name = %s) "
    "AND (%s::text IS NULL OR p.db = %s) AND (%s::text IS NULL OR p.name = %s)"
)


def constraint_of(row: Row) -> ConstraintColumn:
    """Return the column of a constraint that a row holds."""
    (
        catalog,
        db,
        name,
        kind,
        constraint,
        column,
        position,
        value,
        enabled,
        validated,
        relied_on,
        parent_catalog,
        parent_db,
        parent_table,
        parent_column,
        parent_key,
        update_rule,
        delete_rule,
    ) = row
    reference = None
    if parent_table is not None:
        parent = TableName(parent_catalog, parent_db, parent_table)
        reference = Reference(parent, parent_column, parent_key, update_rule, delete_rule)
    return ConstraintColumn(
        TableName(catalog, db, name),
        ConstraintKind(kind),
        constraint,
        column,
        position,
        value,
        enabled,
        validated,
        relied_on,
        reference,
    )


def select_constraints(pg: PgTx, table: TableName) -> list[ConstraintColumn]:
    """Return all constraints of a table."""
    return [constraint_of(row) for row in pg.sql(SELECT_CONSTRAINTS, (list(ConstraintKind), *table))]


def insert_constraints(
    pg: PgTx, table: Table, constraints: Sequence[ConstraintColumn], parents: Mapping[TableName, int]
) -> None:
    """Add constraints to a table that is locked; ``parents``: ids of the tables that foreign keys refer to.

    Raises: MetaError for a second primary key.
    """
    for constraint in constraints:
        to = constraint.reference
        try:
            pg.sql(
                'INSERT INTO table_constraints (table_id, name, position, kind, "column", value, is_enabled, '
                "is_validated, is_relied_on, parent_id, parent_column, parent_key, update_rule, delete_rule) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    table.id,
                    constraint.name,
                    constraint.position,
                    constraint.kind,
                    constraint.column,
                    constraint.value,
                    constraint.is_enabled,
                    constraint.is_validated,
                    constraint.is_relied_on,
                    parents[to.table] if to else None,
                    to.column if to else None,
                    to.key if to else None,
                    to.update_rule if to else None,
                    to.delete_rule if to else None,
                ),
            )
        except UniqueViolation as error:
            raise MetaError(
                f"{'.'.join(table.name)}: the constraint {constraint.name} names position {constraint.position} twice"
            ) from error


def delete_constraint(pg: PgTx, table: Table, name: str) -> bool:
    """Remove a constraint of any kind; False if there is none of the name."""
    return bool(pg.sql("DELETE FROM table_constraints WHERE table_id = %s AND name = %s RETURNING 1", (table.id, name)))


def rename_column(pg: PgTx, table: Table, old: str, new: str) -> None:
    """Let a column's constraints, and the foreign keys that refer to it, follow its new name."""
    pg.sql(
        'UPDATE table_constraints SET "column" = %s WHERE table_id = %s AND "column" = %s; '
        "UPDATE table_constraints SET parent_column = %s WHERE parent_id = %s AND parent_column = %s",
        (new, table.id, old, new, table.id, old),
    )


def delete_column(pg: PgTx, table: Table, column: str) -> None:
    """Remove the constraints that a removed column is part of, and the foreign keys that refer to it."""
    pg.sql(
        "DELETE FROM table_constraints AS c USING table_constraints AS part WHERE c.table_id = part.table_id "
        'AND c.name = part.name AND ((part.table_id = %s AND part."column" = %s) '
        "OR (part.parent_id = %s AND part.parent_column = %s))",
        (table.id, column, table.id, column),
    )
