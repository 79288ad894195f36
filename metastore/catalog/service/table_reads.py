"""Reading tables: single, several, names, lists, columns. One statement each; Spark makes up to fifteen per query.

Source: CAT-T7, CAT-T8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metastore.acid.table_kinds import is_transactional
from metastore.catalog.model import Json, Table, TableType
from metastore.catalog.rules import locations
from metastore.catalog.rules.names import pattern_regex
from metastore.catalog.rules.table_access import UNFILTERED, TableAccess, table_access
from metastore.catalog.service import remote
from metastore.catalog.store import databases as database_store
from metastore.catalog.store import table_lists
from metastore.catalog.store import tables as store
from metastore.catalog.store.table_lists import TableList, TablePiece, TableWires
from metastore.db import pieces
from metastore.db.engine import Database as Postgres
from metastore.db.pieces import UNLIMITED, OrderedRows, Pieces
from metastore.db.wires import Wires
from metastore.errors import (
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    UnknownDatabaseError,
    UnknownTableError,
)
from metastore.ids import DEFAULT_CATALOG, DatabaseName, TableName
from metastore.roots import spellings


@dataclass(frozen=True)
class TableReads:
    """The RPCs that read tables."""

    db: Postgres

    def get_table(self, name: TableName) -> Table:
        """Return a table. Raises: NoSuchObjectError."""
        rows = self.db.once(store.SELECT_TABLE, name)
        if not rows:
            remote.refuse_read(self.db.once, name.database)
            raise NoSuchObjectError(f"{name} table not found")
        return store.table_of(rows[0])

    def metastore_table_at(self, place: str) -> TableName | None:
        """Return the transactional table whose directory is the place, contains it, or lies in it."""
        places = spellings(locations.qualified(place, "file:"))
        around = [directory for each in places for directory in locations.seen_from(each)]
        found = self.db.once(store.SELECT_TRANSACTIONAL_AT, (around, places, DEFAULT_CATALOG))
        names = (TableName(DEFAULT_CATALOG, db, name) for db, name, parameters in found if is_transactional(parameters))
        return next(names, None)

    def get_table_objects_by_name(
        self, database: DatabaseName, names: Sequence[str] | None, pattern: str | None = None, *, encoded: bool = True
    ) -> Pieces[Wires | TablePiece]:
        """Return the existing tables among ``names``, or those that match ``pattern``.

        ``encoded``: as bytes for clients, where PostgreSQL has them. Raises: UnknownDatabaseError,
        InvalidOperationError.
        """
        if not database.db:
            raise UnknownDatabaseError("DB name is null or empty")
        if names is None and pattern is None:
            raise InvalidOperationError(f"{database} cannot find null tables")
        wanted = [name.strip().lower() for name in names or ()]
        if names is None:
            found = self._listed(TableList.matching(database, pattern), UNLIMITED, encoded=encoded)
        else:
            found = self._listed(TableList.named(database, wanted), len(wanted), encoded=encoded)
        if (wanted or names is None) and not found.count:
            remote.refuse_read(self.db.once, database)
            if not self.db.once(database_store.SELECT_DATABASE, database):
                raise UnknownDatabaseError(f"Could not find database {database}")
        return found

    def _listed(self, tables: TableList, most: int, *, encoded: bool) -> Pieces[Wires | TablePiece]:
        listing: OrderedRows[Wires | TablePiece] = TableWires(tables) if encoded else tables
        return pieces.read(self.db, listing, most, table_lists.TABLES)

    def get_tables(self, database: DatabaseName, pattern: str | None, kind: str | None = None) -> Pieces[bytes]:
        """Return names that match, sorted, as bytes for clients; none without the database.

        Raises: MetaError for a type, and for a pattern in a database of type REMOTE.
        """
        if kind is not None and kind not in TableType.__members__.values():
            raise MetaError(f"No table type {kind!r}: expected one of {', '.join(TableType)}")
        names = table_lists.names(database, pattern, kind).read(self.db, UNLIMITED, table_lists.NAMES)
        if pattern is not None and kind is None and not names.count:
            remote.refuse_read(self.db.once, database)  # As in Hive, whose other lists of a REMOTE database are empty.
        return names

    def get_materialized_views_for_rewriting(self, database: DatabaseName) -> list[str]:
        """Return names of a database's materialized views that may replace their query."""
        return [view.name.table for view in self._rewritable(database.catalog) if view.name.database == database]

    def get_all_materialized_view_objects_for_rewriting(self) -> list[Table]:
        """Return such materialized views of every database of the default catalog."""
        return self._rewritable(DEFAULT_CATALOG)

    def _rewritable(self, catalog: str) -> list[Table]:
        return [store.table_of(row) for row in self.db.once(store.SELECT_REWRITABLE_VIEWS, (catalog,))]

    def get_table_meta(
        self, catalog: str, database_pattern: str | None, table_pattern: str | None, types: Sequence[str]
    ) -> Pieces[bytes]:
        """Return a line for each table that matches, by database and name, as bytes for clients."""
        return table_lists.metas(catalog, database_pattern, table_pattern, types).read(
            self.db, UNLIMITED, table_lists.METAS
        )

    def get_table_names_by_filter(
        self, database: DatabaseName, accepts: Callable[[Table], bool], most: int
    ) -> list[str]:
        """Return names of tables that ``accepts`` approves, sorted; at most ``most`` unless negative."""
        rows = self.db.once(store.SELECT_MATCHING_TABLES, (*database, ""))
        names = [table.name.table for table in map(store.table_of, rows) if accepts(table)]
        return names if most < 0 else names[:most]

    def get_tables_ext(
        self, database: DatabaseName, pattern: str | None, said: Sequence[str], most: int
    ) -> list[tuple[str, TableAccess]]:
        """Return the matching names, sorted, with the access of a client that names these capabilities.

        ``most``: the limit, unless negative. A client without capabilities, or with ``UNFILTERED``, gets no names.
        """
        if not said or UNFILTERED in said:
            return []
        regex = pattern_regex(pattern)
        rows = self.db.once(store.SELECT_KINDS, (*database, regex, regex, None if most < 0 else most))
        return [
            (name, table_access(table_type, parameters, said, bucketed=buckets > 0))
            for name, table_type, parameters, buckets in rows
        ]

    def get_fields(self, database: DatabaseName, name: str) -> list[Json]:
        """Return the data columns; ``t.column`` asks for those of ``t``.

        Raises: UnknownTableError, also without the database; MetaError in a database of type REMOTE.
        """
        return list(self._described(database, name).sd["cols"])

    def get_schema(self, database: DatabaseName, name: str) -> list[Json]:
        """Return the data columns and the partition keys. Raises: as ``get_fields``."""
        table = self._described(database, name)
        return [*table.sd["cols"], *table.partition_keys]

    def _described(self, database: DatabaseName, name: str) -> Table:
        whole = TableName(*database, name.lower())
        wanted = dict.fromkeys((whole, TableName(*database, name.partition(".")[0].lower())))
        found = [row for each in wanted for row in self.db.once(store.SELECT_TABLE, each)]
        if not found:
            remote.refuse_read(self.db.once, database)
            raise UnknownTableError(f"{whole} table not found")
        return store.table_of(found[0])
