"""User-defined functions. Source: CAT-F1."""

from dataclasses import dataclass, replace

from metastore.catalog.events import rules as events
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import Function
from metastore.catalog.rules.names import is_object_name, pattern_regex
from metastore.catalog.service import remote
from metastore.catalog.store import functions as store
from metastore.db.engine import Database as Postgres
from metastore.errors import AlreadyExistsError, InvalidObjectError, MetaError, NoSuchObjectError
from metastore.ids import DEFAULT_CATALOG, DatabaseName, TableName


@dataclass(frozen=True)
class FunctionService:
    """The RPCs about functions; the files that a function needs are never touched."""

    db: Postgres
    events: CatalogEvents = SILENT

    def create_function(self, function: Function) -> None:
        """Add a function. Raises: InvalidObjectError, NoSuchObjectError without the database, AlreadyExistsError."""
        _require_valid(function)
        with self.db.begin() as pg:
            remote.refuse_missing(pg.sql, function.name.database, "Create function")
            created = replace(function, create_time=int(pg.now.timestamp()))
            if not store.insert_function(pg, created):
                raise AlreadyExistsError(f"Function {function.name.table} already exists")
            self.events.record(pg, events.function_created, created)

    def get_function(self, name: TableName) -> Function:
        """Return a function. Raises: NoSuchObjectError, with the words that Spark looks for."""
        rows = self.db.once(store.SELECT_FUNCTION, name)
        if not rows:
            raise NoSuchObjectError(f"Function {name} does not exist")
        return store.function_of(rows[0])

    def get_functions(self, database: DatabaseName, pattern: str | None) -> list[str]:
        """Return names that match, sorted; none if there is no such database."""
        regex = pattern_regex(pattern)
        return [name for (name,) in self.db.once(store.SELECT_FUNCTION_NAMES, (*database, regex, regex))]

    def get_all_functions(self) -> list[Function]:
        """Return every function of the default catalog."""
        return [store.function_of(row) for row in self.db.once(store.SELECT_FUNCTIONS, (DEFAULT_CATALOG,))]

    def alter_function(self, name: TableName, function: Function) -> None:
        """Replace name, class, owner and kind; resources and creation time stay.

        Raises: MetaError, InvalidObjectError.
        """
        if function.name.catalog != name.catalog:
            raise MetaError(f"Function {name} cannot move to the catalog {function.name.catalog}")
        _require_valid(function)
        with self.db.begin() as pg:
            if not store.update_function(pg, name, function):
                raise MetaError(f"Function {name} does not exist")

    def drop_function(self, name: TableName) -> None:
        """Remove a function. Raises: NoSuchObjectError."""
        with self.db.begin() as pg:
            if not store.delete_function(pg, name):
                raise NoSuchObjectError(f"Function {name} does not exist")
            self.events.record(pg, events.function_dropped, name)


def _require_valid(function: Function) -> None:
    if not is_object_name(function.name.table):
        raise InvalidObjectError(f"{function.name.table} is not a valid object name")
    if not function.class_name:
        raise InvalidObjectError(f"Function {function.name} needs the name of a class")
