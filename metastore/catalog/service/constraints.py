"""Primary, foreign and unique keys, NOT NULL, DEFAULT and CHECK: declared here, enforced by the writers of rows.

Source: CAT-K1, CAT-K2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from metastore.catalog.events import rules as events
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import ConstraintColumn, ConstraintKind, Table
from metastore.catalog.rules import constraints as rules
from metastore.catalog.store import constraints as store
from metastore.catalog.store import tables
from metastore.db.engine import Database as Postgres
from metastore.db.engine import PgTx
from metastore.errors import InvalidObjectError
from metastore.ids import TableName


@dataclass(frozen=True)
class ConstraintService:
    """The RPCs about constraints."""

    db: Postgres
    events: CatalogEvents = SILENT

    def add(self, drafts: Sequence[ConstraintColumn]) -> None:
        """Add constraints, each to the table that it names.

        Serialises on: the rows of the tables.  Raises: InvalidObjectError, MetaError.
        """
        with self.db.begin() as pg:
            for name, group in groupby(drafts, lambda draft: draft.table):
                self.events.record(pg, events.constraints_added, add_to_table(pg, _locked(pg, name), list(group)))

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        """Remove a constraint, of any kind. Foreign keys that refer to a removed key stay.

        Serialises on: the table's row.  Raises: InvalidObjectError without table or constraint.
        """
        with self.db.begin() as pg:
            if not store.delete_constraint(pg, _locked(pg, name), constraint.strip().lower()):
                raise InvalidObjectError(
                    f"The constraint: {constraint} does not exist for the associated table: {name}"
                )
            self.events.record(pg, events.constraint_dropped, name, constraint.strip().lower())

    def get(self, name: TableName, *kinds: ConstraintKind) -> list[ConstraintColumn]:
        """Return the constraints of these kinds, by name and position; none if there is no such table."""
        return [store.constraint_of(row) for row in self.db.once(store.SELECT_CONSTRAINTS, (list(kinds), *name))]

    def get_foreign_keys(
        self, catalog: str, child: tuple[str | None, str | None], parent: tuple[str | None, str | None]
    ) -> list[ConstraintColumn]:
        """Return foreign keys of ``child`` (database, table) that refer to ``parent``; None: any table."""
        names = [None if name is None else name.strip().lower() for name in (*child, *parent)]
        twice = [name for name in names for _ in range(2)]
        rows = self.db.once(store.SELECT_FOREIGN_KEYS, ([ConstraintKind.FOREIGN_KEY], catalog, *twice))
        return [store.constraint_of(row) for row in rows]


def add_to_table(pg: PgTx, table: Table, drafts: Sequence[ConstraintColumn]) -> list[ConstraintColumn]:
    """Add constraints to a table that is locked or new; return them. Raises: InvalidObjectError, MetaError."""
    stored = store.select_constraints(pg, table.name)
    taken = {constraint.name for constraint in stored}
    rules.require_one_primary_key(table, stored, drafts)
    added = rules.named(drafts, taken, table.id, int(pg.now.timestamp() * 1000))
    rules.require_columns(table, added)
    keys = [constraint for constraint in added if constraint.kind is not ConstraintKind.FOREIGN_KEY]
    store.insert_constraints(pg, table, keys, {})
    foreign: list[ConstraintColumn] = []
    for _, group in groupby(
        (constraint for constraint in added if constraint.kind is ConstraintKind.FOREIGN_KEY),
        lambda constraint: constraint.name,
    ):
        foreign += _add_foreign_key(pg, table, list(group))
    return [*keys, *foreign]


def follow_columns(pg: PgTx, old: Table, new: Table) -> None:
    """Let constraints follow the columns that an alteration renames or removes."""
    for before, after in rules.renamed_columns(old, new).items():
        if after is None:
            store.delete_column(pg, old, before)
        else:
            store.rename_column(pg, old, before, after)


def _add_foreign_key(pg: PgTx, table: Table, columns: list[ConstraintColumn]) -> list[ConstraintColumn]:
    rules.require_other_columns(columns)
    parents = {column.reference.table for column in columns if column.reference is not None}
    if len(parents) != 1:
        raise InvalidObjectError(f"Foreign key {columns[0].name} of {table.name} refers to {len(parents)} tables")
    [parent_name] = parents
    if parent_name.catalog != table.name.catalog:
        raise InvalidObjectError(f"Foreign key of {table.name} refers to another catalog: {parent_name}")
    parent = tables.lock_table(pg, parent_name, share=True)
    if parent is None:
        raise InvalidObjectError(f"Parent table not found: {parent_name}")
    key = rules.referenced_key(columns, store.select_constraints(pg, parent_name))
    referring = _referring(columns, key)
    store.insert_constraints(pg, table, referring, {parent_name: parent.id})
    return referring


def _referring(columns: Iterable[ConstraintColumn], key: str) -> list[ConstraintColumn]:
    return [
        replace(column, reference=replace(column.reference, key=key))
        for column in columns
        if column.reference is not None
    ]


def _locked(pg: PgTx, name: TableName) -> Table:
    table = tables.lock_table(pg, name)
    if table is None:
        raise InvalidObjectError(f"Parent table not found: {name}")
    return table
