"""Names and ids that travel between the concepts, in their stored spelling.

Rule: catalog, database and table names are lower case from here on down (Hive stores them so; comparing is then
plain equality). ``""`` stands for "no table" and "no partition" in stored rows, so unique keys need no NULL rules.
"""

from typing import NamedTuple

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"


class DatabaseName(NamedTuple):
    """A database of a catalog, lower case."""

    catalog: str
    db: str

    def __str__(self) -> str:
        """Return Hive's spelling: the default catalog is not shown."""
        return self.db if self.catalog == DEFAULT_CATALOG else f"{self.catalog}.{self.db}"


class TableName(NamedTuple):
    """A table of a database, lower case."""

    catalog: str
    db: str
    table: str

    @property
    def database(self) -> DatabaseName:
        """The database that the table is in."""
        return DatabaseName(self.catalog, self.db)

    def __str__(self) -> str:
        """Return Hive's spelling: the default catalog is not shown."""
        return f"{self.database}.{self.table}"


def split_catalog(name: str | None) -> tuple[str, str | None]:
    """Split a database argument as the 3.x and 4.x clients write it into (catalog, rest).

    ``db`` → ("hive", "db"); ``@cat#db`` → ("cat", "db"); ``@cat#`` → ("cat", None), all databases;
    ``@cat#!`` → ("cat", ""), the empty name. Splits at the first ``#`` (Hive: MetaStoreUtils.parseDbName).
    The rest keeps its case, since it may be a pattern.
    """
    if name is None or not name.startswith("@") or "#" not in name:
        return DEFAULT_CATALOG, name
    catalog, _, rest = name[1:].partition("#")
    catalog = catalog.lower() or DEFAULT_CATALOG
    if rest == "!":
        return catalog, ""
    return catalog, rest or None


def database_name(db: str, catalog: str | None = None) -> DatabaseName:
    """Return the stored name for a database argument; ``catalog`` is the request's catName field, if it has it."""
    prefix_catalog, rest = split_catalog(db)
    return DatabaseName((catalog or prefix_catalog).lower(), (rest or "").lower())


def table_name(db: str, table: str, catalog: str | None = None) -> TableName:
    """Return the stored name for a pair of database and table arguments."""
    return TableName(*database_name(db, catalog), table.lower())


def split_table_name(text: str) -> tuple[str | None, str]:
    """Return the database and the table of ``db.table``, as a user writes it; None without a database.

    Raises: ValueError for anything else.
    """
    db, dot, table = text.rpartition(".")
    if not table or (dot and not db) or "." in db:
        raise ValueError(f"'{text}' is not a table's name: write db.table.")
    return db or None, table


def full_table_name(text: str) -> TableName:
    """Return the stored name for ``db.table`` or ``cat.db.table``, as get_valid_write_ids receives it."""
    *catalog, db, table = text.split(".", 2) if text.count(".") else ("", text)
    return table_name(db, table, catalog[0] if catalog else None)
