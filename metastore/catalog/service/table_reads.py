"""Reading tables: single, several, names, lists, columns. One statement each; Spark makes up to fifteen per query.

Source: CAT-T7, CAT-T8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metastore.catalog.model import Json, Table, TableMeta, TableType
from metastore.catalog.rules.names import pattern_regex
from metastore.catalog.store import databases as database_store
from metastore.catalog.store import tables as store
from metastore.db.engine import Database as Postgres
from metastore.errors import (
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    UnknownDatabaseError,
    UnknownTableError,
)
from metastore.ids import DEFAULT_CATALOG, DatabaseName, TableName


@dataclass(frozen=True)
class TableReads:
    """The RPCs that read tables."""

    db: Postgres

    def get_table(self, name: TableName) -> Table:
        """Raises: NoSuchObjectError."""
        rows = self.db.once(store.SELECT_TABLE, name)
        if not rows:
            raise NoSuchObjectError(f"{name} table not found")
        return store.table_of(rows[0])

    def get_table_objects_by_name(
        self, database: DatabaseName, names: Sequence[str] | None, pattern: str | None = None
    ) -> list[Table]:
        """The tables that there are among ``names``, or that match ``pattern``. Raises: UnknownDatabaseError, ..."""
        if not database.db:
            raise UnknownDatabaseError("DB name is null or empty")
        if names is None and pattern is None:
            raise InvalidOperationError(f"{database} cannot find null tables")
        if names is not None:
            rows = self.db.once(store.SELECT_TABLES, (*database, [name.strip().lower() for name in names]))
        else:
            rows = self.db.once(store.SELECT_MATCHING_TABLES, (*database, pattern_regex(pattern)))
        if not rows and names and not self.db.once(database_store.SELECT_DATABASE, database):
            raise UnknownDatabaseError(f"Could not find database {database}")
        return [store.table_of(row) for row in rows]

    def get_tables(self, database: DatabaseName, pattern: str | None, kind: str | None = None) -> list[str]:
        """Names that match, sorted; none if there is no such database. Raises: MetaError for an unknown type."""
        if kind is not None and kind not in TableType.__members__.values():
            raise MetaError(f"No table type {kind!r}: expected one of {', '.join(TableType)}")
        regex = pattern_regex(pattern)
        return [name for (name,) in self.db.once(store.SELECT_TABLE_NAMES, (*database, regex, regex, kind, kind))]

    def get_materialized_views_for_rewriting(self, database: DatabaseName) -> list[str]:
        """Names of a database's materialized views that may stand in for their query."""
        return [view.name.table for view in self._rewritable(database.catalog) if view.name.database == database]

    def get_all_materialized_view_objects_for_rewriting(self) -> list[Table]:
        """Those of every database of the default catalog."""
        return self._rewritable(DEFAULT_CATALOG)

    def _rewritable(self, catalog: str) -> list[Table]:
        return [store.table_of(row) for row in self.db.once(store.SELECT_REWRITABLE_VIEWS, (catalog,))]

    def get_table_meta(
        self, catalog: str, database_pattern: str | None, table_pattern: str | None, types: Sequence[str] | None
    ) -> list[TableMeta]:
        """A line for each table that matches, by database and name."""
        databases, tables = pattern_regex(database_pattern), pattern_regex(table_pattern)
        wanted = list(types) if types else None
        rows = self.db.once(store.SELECT_TABLE_METAS, (catalog, databases, databases, tables, tables, wanted, wanted))
        return [store.table_meta_of(row) for row in rows]

    def get_table_names_by_filter(
        self, database: DatabaseName, accepts: Callable[[Table], bool], most: int
    ) -> list[str]:
        """Names of tables that ``accepts`` says yes to, sorted; at most ``most`` unless negative."""
        rows = self.db.once(store.SELECT_MATCHING_TABLES, (*database, ""))
        names = [table.name.table for table in map(store.table_of, rows) if accepts(table)]
        return names if most < 0 else names[:most]

    def get_fields(self, database: DatabaseName, name: str) -> list[Json]:
        """The data columns; ``t.column`` asks for those of ``t``. Raises: UnknownTableError, UnknownDatabaseError."""
        return list(self._described(database, name).sd["cols"])

    def get_schema(self, database: DatabaseName, name: str) -> list[Json]:
        """The data columns and the partition keys. Raises: as ``get_fields``."""
        table = self._described(database, name)
        return [*table.sd["cols"], *table.partition_keys]

    def _described(self, database: DatabaseName, name: str) -> Table:
        wanted = TableName(*database, name.partition(".")[0].lower())
        try:
            return self.get_table(wanted)
        except NoSuchObjectError as error:
            if not self.db.once(database_store.SELECT_DATABASE, database):
                raise UnknownDatabaseError(f"There is no database named {database}") from error
            raise UnknownTableError(str(error)) from error
