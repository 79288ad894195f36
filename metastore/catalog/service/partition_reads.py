"""Reading partitions: single, by values or by name; lists by prefix, names, filter or expression.

Here a call becomes a `Selection`; `PartitionLists` reads it. Nothing is locked.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from metastore.catalog.model import Table
from metastore.catalog.rules import partitions as rules
from metastore.catalog.rules.partition_expression import parse_expression
from metastore.catalog.rules.partition_filter import parse_filter
from metastore.catalog.rules.partition_predicate import (
    EVERYTHING,
    And,
    Comparison,
    KeyKind,
    Op,
    Predicate,
    keeps,
    leading_texts,
)
from metastore.catalog.rules.partitions import Partition
from metastore.catalog.service.partition_lists import PartitionLists, Selection
from metastore.catalog.store import partitions as store
from metastore.catalog.store import tables as table_store
from metastore.catalog.store.partition_prefilter import Sql, is_decided, is_exact, leading, prefilter
from metastore.config import CatalogSettings
from metastore.db import arrays
from metastore.db.engine import Database
from metastore.db.pieces import UNLIMITED, Pieces
from metastore.errors import InvalidObjectError, InvalidRequestError, MetaError, MetastoreError, NoSuchObjectError
from metastore.ids import TableName
from metastore.partition_names import escape, make_name, values_for


@dataclass(frozen=True)
class PartitionReads:
    """The calls that read partitions."""

    db: Database
    settings: CatalogSettings

    @cached_property
    def lists(self) -> PartitionLists:
        """The reader of selections."""
        return PartitionLists(self.db, self.settings)

    def get_partition(self, name: TableName, values: Sequence[str | None] | None) -> Partition:
        """Return the partition with these values: one statement. Raises: NoSuchObjectError, InvalidRequestError."""
        default = self.settings.default_partition_name
        escaped = [escape(value or default) for value in values or ()]
        answer = store.select_by_values(self.db.once, name, escaped)
        if answer is None:
            raise NoSuchObjectError(f"{name} table not found")
        fields, partition = answer
        keys = [field["name"] for field in fields]
        wanted = rules.partition_name(keys, values, default)
        if partition is None and any(escape(key) != key for key in keys):
            return self._by_name(self.table(name), wanted)
        if partition is None:
            raise NoSuchObjectError(f"partition values={list(values or ())} of {name} not found")
        return partition

    def get_partition_by_name(self, name: TableName, partition: str) -> Partition:
        """Return the partition with this name; segments that name no key are ignored. Raises: NoSuchObjectError."""
        if not partition:
            raise InvalidRequestError("The partition's name is empty")
        table = self.table(name)
        values = values_for(table.partition_key_names, partition)
        if values is None:
            raise NoSuchObjectError(f"{partition} is not the name of a partition of {name}: a key is missing")
        return self._by_name(table, make_name(table.partition_key_names, values))

    def get_partitions(self, name: TableName, limit: int = UNLIMITED) -> Selection:
        """Return the table's first partitions. Raises: NoSuchObjectError."""
        return Selection(self.table(name), limit=limit)

    def get_partition_names(self, name: TableName, limit: int = UNLIMITED) -> Pieces[bytes]:
        """Return the names of the table's first partitions, as bytes for clients; none without the table.

        Raises: MetaError for an empty name.
        """
        if "" in name:
            raise MetaError(f"The name of the database or the table is empty: {name}")
        try:
            table = self.table(name)
        except NoSuchObjectError:
            return Pieces(0, iter(()), ExitStack())
        return store.listed_names(table).read(self.db, limit, store.NAMES)

    def get_partitions_ps(
        self, name: TableName, values: Sequence[str | None] | None, limit: int = UNLIMITED
    ) -> Selection:
        """Return partitions whose first values are these; ``""`` stands for any. Raises: as ``get_partitions``."""
        table = self.table(name)
        return Selection(table, *self._like(table, values), limit)

    def get_partition_names_ps(
        self, name: TableName, values: Sequence[str | None] | None, limit: int = UNLIMITED
    ) -> Pieces[bytes]:
        """Return the names of the partitions of ``get_partitions_ps``, as bytes for clients."""
        table = self.table(name)
        return store.listed_names(table, *self._like(table, values)).read(self.db, limit, store.NAMES)

    def get_partitions_by_names(self, name: TableName, names: Sequence[str]) -> Selection:
        """Return the named partitions that exist; names are compared as they are stored.

        Raises: InvalidObjectError without the table.
        """
        return _named(self.table(name, InvalidObjectError), names)

    def get_partitions_by_filter(self, name: TableName, text: str | None, limit: int = UNLIMITED) -> Selection:
        """Return partitions that a filter string keeps. Raises: InvalidRequestError for a filter that Hive refuses."""
        table = self.table(name)
        return self._matching(table, self._filter(table, text), limit)

    def get_num_partitions_by_filter(self, name: TableName, text: str | None) -> int:
        """Count the partitions that a filter string keeps."""
        table = self.table(name)
        predicate = self._filter(table, text)
        if is_exact(predicate):
            return store.count_partitions(self.db.once, table, *self._condition(table, predicate))
        return len(self._matching_values(table, predicate))

    def get_partitions_by_expr(self, name: TableName, expr: bytes, limit: int = UNLIMITED) -> Selection:
        """Return partitions that a serialized Hive expression keeps, or may keep. Raises: InvalidRequestError."""
        table = self.table(name)
        return self._matching(table, self._expression(table, expr), limit, tell=True)

    def get_partition_names_by_expr(self, name: TableName, expr: bytes, limit: int = UNLIMITED) -> Pieces[bytes]:
        """Return the names of the partitions of ``get_partitions_by_expr``, as bytes for clients."""
        selected = self.get_partitions_by_expr(name, expr, limit)
        names = store.listed_names(selected.table, selected.condition, selected.parameters)
        return names.read(self.db, selected.limit, store.NAMES)

    def get_partition_values(
        self,
        name: TableName,
        columns: Sequence[str],
        order: Sequence[str],
        text: str | None,
        *,
        distinct: bool,
        ascending: bool,
        limit: int,
    ) -> list[list[str]]:
        """Return the values of some keys, ordered by values.

        Raises: InvalidRequestError without the table, and for a key that the table does not have.
        """
        table = self.table(name, InvalidRequestError, nameless=InvalidRequestError)
        shown, ordered = self._columns(table, columns), self._columns(table, order or columns)
        rows = [values for _, values in self._matching_values(table, self._filter(table, text))]
        rows.sort(key=lambda values: [values[column] for column in ordered], reverse=not ascending)
        shown_values = [[values[column] for column in shown] for values in rows]
        if distinct:
            shown_values = [list(row) for row in dict.fromkeys(map(tuple, shown_values))]
        return shown_values if limit < 0 else shown_values[:limit]

    def table(
        self,
        name: TableName,
        missing: type[MetastoreError] = NoSuchObjectError,
        nameless: type[MetastoreError] = NoSuchObjectError,
    ) -> Table:
        """Return the table. Raises: ``missing``; ``nameless`` if the name of the database or the table is empty."""
        rows = self.db.once(table_store.SELECT_TABLE, name)
        if not rows:
            raise (nameless if "" in name else missing)(f"{name} table not found")
        return table_store.table_of(rows[0])

    def _by_name(self, table: Table, partition: str) -> Partition:
        partitions = store.select_partitions(self.db.once, table, "p.name = %s", (partition,))
        if not partitions:
            raise NoSuchObjectError(f"partition {partition} of {table.name} not found")
        return partitions[0]

    def _filter(self, table: Table, text: str | None) -> Predicate:
        return parse_filter(text, rules.partition_keys(table), self.settings.default_partition_name)

    def _expression(self, table: Table, expr: bytes) -> Predicate:
        return parse_expression(expr, rules.partition_keys(table), self.settings.default_partition_name)

    def _like(self, table: Table, values: Sequence[str | None] | None) -> tuple[str, list[Any]]:
        """Return the condition for a partial specification.

        Leading values are a range of names, which the index finds.
        """
        keys, default = table.partition_key_names, self.settings.default_partition_name
        given = [value or "" for value in values or ()][: rules.prefix_length(keys, values)]
        known = next((i for i, value in enumerate(given) if not value), len(given))
        rest = And(
            tuple(Comparison(i, KeyKind.TEXT, Op.EQ, value) for i, value in enumerate(given) if value and i > known)
        )
        return _both(leading(keys, given[:known]), prefilter(rest, default))

    def _matching(self, table: Table, predicate: Predicate, limit: int, *, tell: bool = False) -> Selection:
        """Select the partitions that the condition keeps or leaves undecided. ``tell``: report that some are undecided.

        Where PostgreSQL cannot decide, the values select the names, before anything else of a partition is read.
        """
        if predicate == EVERYTHING:
            return Selection(table, limit=limit)
        default = self.settings.default_partition_name
        if is_exact(predicate) and (not tell or is_decided(predicate, default)):
            return Selection(table, *self._condition(table, predicate), limit)
        names, unknown = [], False
        for name, values in self._candidates(table, predicate) if limit else []:
            answer = keeps(predicate, values, default)
            if answer is not False:
                names.append(name)
                unknown = unknown or answer is None
            if len(names) == limit:
                break
        return _named(table, names)._replace(unknown=unknown, is_limited=True)

    def _matching_values(self, table: Table, predicate: Predicate) -> list[tuple[str, list[str]]]:
        default = self.settings.default_partition_name
        rows = self._candidates(table, predicate)
        return [(name, values) for name, values in rows if keeps(predicate, values, default) is not False]

    def _candidates(self, table: Table, predicate: Predicate) -> list[tuple[str, list[str]]]:
        """Return name and values of a superset of the partitions that the condition keeps."""
        return store.select_values(self.db.once, table, *self._condition(table, predicate))

    def _condition(self, table: Table, predicate: Predicate) -> Sql:
        """Return the condition in SQL. Conditions on the first keys are a range of names, which the index finds."""
        default = self.settings.default_partition_name
        range_of_names = leading(table.partition_key_names, leading_texts(predicate, default))
        return _both(range_of_names, prefilter(predicate, default))

    @staticmethod
    def _columns(table: Table, names: Sequence[str]) -> list[int]:
        keys = table.partition_key_names
        unknown = [name for name in names if name.lower() not in keys]
        if unknown:
            raise InvalidRequestError(f"{', '.join(unknown)}: not a partition key of {table.name}")
        return [keys.index(name.lower()) for name in names]


def _both(first: Sql, second: Sql) -> Sql:
    return f"{first[0]} AND {second[0]}", [*first[1], *second[1]]


def _named(table: Table, names: Sequence[str]) -> Selection:
    named = arrays.literal(names)
    return Selection(table, "p.name = ANY(%s::text[])", (named,), limit=len(names), is_limited=False)
