"""Databases of type REMOTE: their tables are in another system, which a data connector names.

Rule: this service never asks that system, as Hive's does with a JDBC driver. A call about such a table says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from metastore.catalog.model import Database
from metastore.catalog.store import databases as store
from metastore.db.engine import Row
from metastore.errors import MetaError
from metastore.ids import DatabaseName

Ask = Callable[[str, Sequence[Any]], list[Row]]


def refuse(database: Database, action: str) -> None:
    """Raise MetaError if a database is REMOTE. ``action``: the refused change, as ``Create table``."""
    if database.connector is not None:
        raise MetaError(f"{action} in REMOTE database {database.name.db} is not allowed")


def refuse_missing(ask: Ask, name: DatabaseName, action: str) -> None:
    """Raise MetaError if a table to change was not found because its database is REMOTE. ``ask``: runs SQL."""
    for row in ask(store.SELECT_DATABASE, name):
        refuse(store.database_of(row), action)


def refuse_read(ask: Ask, name: DatabaseName) -> None:
    """Raise MetaError if nothing was found because the database is REMOTE. ``ask``: runs SQL."""
    for row in ask(store.SELECT_DATABASE, name):
        database = store.database_of(row)
        if database.connector is not None:
            raise MetaError(
                f"The tables of REMOTE database {name} are read where its data connector {database.connector} says, "
                "and not by this metastore: create an external table with the JDBC storage handler for each"
            )
