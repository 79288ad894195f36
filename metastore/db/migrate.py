"""Migrations of a database's schema to this release's, once, however many servers start at the same time.

Rule: migrations are numbered without gaps, applied in order under one advisory lock, each in a transaction of its own.
A database whose schema is newer than this release is served if the schema says that this release can (ADR 57), and else
refused: an older server would write rows that the newer server cannot trust. A server that finds the schema current
pays two queries and never loads Alembic; one that finds no schema runs one script (``schema.sql``), the sum of all
migrations. Migrations begin with the schema of release 0.2: a database that is older is brought there by that release.

The schema (namespace) of our tables is chosen here, once, and every session then names it: a search path that is
changed later, or that differs between the users of two servers, cannot lead to another database.
"""

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg2
from psycopg2.extensions import connection

import metastore
from metastore.db import network, sessions
from metastore.db.pool import first_line
from metastore.errors import InvalidInputError, MetastoreError, UnavailableError

ALEMBIC_ALONE = "Run `metastore db upgrade` instead: it takes the lock that keeps two upgrades apart."

LOCK = 0x6D657461  # "meta" is the key of the advisory lock.
_WAIT_FOR_OTHERS = "300s"  # Another server may be migrating.
_WAIT_FOR_A_TABLE = "10s"  # A migration must not queue behind a long reader and block every later query.
_ONE_STATEMENT = "600s"
_OURS = """SELECT n.nspname, pg_table_is_visible(c.oid)
             FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.relname = 'txn_counter' AND c.relkind = 'r' ORDER BY 2 DESC, 1"""


MOVED = "moved-"
"""The prefix of the version of a database that was moved away: no release, of whatever age, works on it."""


class MovedError(MetastoreError):
    """Error: the database was moved to another PostgreSQL."""


class SchemaTooNewError(MetastoreError):
    """Error: a newer release migrated the database, and this release cannot work on its schema."""


class SchemaTooOldError(MetastoreError):
    """Error: the database is of a release before the first migration."""


class Versions(NamedTuple):
    """The versions of the database and of this release; ``""`` is an empty database. ``schema``: the namespace."""

    database: str
    release: str
    schema: str = sessions.DEFAULT_SCHEMA


class Lendable(connection):
    """A connection that SQLAlchemy may use but, while it is ``lent``, neither commit, roll back nor close."""

    lent = False

    def commit(self) -> None:
        """Commit, unless it is lent."""
        if not self.lent:
            super().commit()

    def rollback(self) -> None:
        """Roll back, unless it is lent."""
        if not self.lent:
            super().rollback()

    def close(self) -> None:
        """Close it, unless it is lent."""
        if not self.lent:
            super().close()


def directory() -> Path:
    """Return the directory of the migrations: inside the package when installed, beside it in a checkout."""
    package = Path(metastore.__file__).parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def release_version() -> str:
    """Return the newest migration of this release."""
    return max(_migrations())


def _migrations() -> list[str]:
    return [path.name[:4] for path in (directory() / "versions").glob("[0-9][0-9][0-9][0-9]_*.py")]


def versions(url: str) -> Versions:
    """Compare the database's schema with this release's. Raises: UnavailableError."""
    sessions.require_own(url)
    session = _connect(url)
    try:
        return _known(session)
    finally:
        session.close()


def usable(url: str) -> Versions:
    """Return the versions of a database that is not too new for this release; it may be too old. Nothing changes.

    Raises: SchemaTooNewError, MovedError, UnavailableError.
    """
    sessions.require_own(url)
    session = _connect(url)
    try:
        return _checked(session, beside_newer=True)
    finally:
        session.close()


def upgrade(url: str) -> Versions:
    """Apply missing migrations; return the versions before. A newer schema that fits is left as it is.

    Serialises on: an advisory lock of the database.
    Raises: SchemaTooNewError, SchemaTooOldError, UnavailableError, InvalidInputError.
    """
    sessions.require_own(url)
    session = _connect(url)
    try:
        before = _migratable(session, beside_newer=True)
        if before.database >= before.release:
            return before
        with session.cursor() as cursor:
            cursor.execute(f"SET statement_timeout = '{_WAIT_FOR_OTHERS}'; SET lock_timeout = 0")
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        before = _migratable(session, beside_newer=True)
        if not before.database:
            _require_none_of_hive(session)
            _make(url, before.schema)
        elif before.database < before.release:
            _run_alembic(url, before.schema)
        return before
    except psycopg2.OperationalError as error:
        raise UnavailableError(f"The schema could not be brought up to date: {first_line(error)}") from error
    finally:
        session.close()  # The end of the session releases the advisory lock.


def create_within(session: Lendable, version: str) -> None:
    """Make the tables of a version in the transaction of a session whose search path leads to an empty schema.

    Raises: SchemaTooNewError, SchemaTooOldError, InvalidInputError, and psycopg2's errors.
    """
    if version > release_version():
        raise _too_new(version, release_version())
    if version < min(_migrations()):
        raise _too_old(version)
    if version not in _migrations():
        raise InvalidInputError(f"No release has had the schema version {version}.")
    to_revision(session, version)


def upgrade_within(session: Lendable) -> None:
    """Apply missing migrations in the transaction of a session whose search path leads to the schema.

    Raises: SchemaTooNewError, SchemaTooOldError, and psycopg2's errors.
    """
    before = _migratable(session)
    if before.database != before.release:
        to_revision(session, "head")


def require_here(known: Versions) -> None:
    """Raise MovedError if the database was moved away."""
    if known.database.startswith(MOVED):
        raise MovedError(
            "The metastore was moved from this database to another one (`metastore db move`). Start with the "
            "--database-url of that one. What is here is of the time of the move: to go on from here all the same, run "
            f"UPDATE alembic_version SET version_num = '{known.database.removeprefix(MOVED)}' and give up the other."
        )


def table_names() -> set[str]:
    """Return every table that a metastore of this release has."""
    import metastore.db.catalog_tables  # noqa: F401 - it adds its tables to the metadata
    from metastore.db.tables import metadata

    return {"alembic_version", *metadata.tables}


def _checked(session: connection, *, beside_newer: bool = False) -> Versions:
    """Return the versions, checked; ``beside_newer``: also of a newer schema that this release can work on."""
    known = _known(session)
    require_here(known)
    if known.database > known.release and not (beside_newer and _is_for(session, known.release)):
        raise _too_new(known.database, known.release)
    return known


def _migratable(session: connection, *, beside_newer: bool = False) -> Versions:
    """Return the versions of a database that this release can migrate. Raises: as `_checked`, SchemaTooOldError."""
    known = _checked(session, beside_newer=beside_newer)
    if "" < known.database < min(_migrations()):
        raise _too_old(known.database)
    return known


def _too_old(version: str) -> SchemaTooOldError:
    return SchemaTooOldError(
        f"The database has schema version {version}, which is older than release 0.2 ({min(_migrations())}), "
        "from which this release migrates. Run `metastore db upgrade` of release 0.2 first, then this release."
    )


def _too_new(version: str, release: str) -> SchemaTooNewError:
    return SchemaTooNewError(
        f"The database has schema version {version}, made by a newer release of the metastore; this release "
        f"knows versions up to {release}. Start the newer release, or restore the database from a backup."
    )


def _is_for(session: connection, release: str) -> bool:
    """Return True if a newer release's schema says that this release can work on it."""
    with session.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM oldest_release WHERE version <= %s)", [release])
        return bool(cursor.fetchall()[0][0])


def _known(session: connection) -> Versions:
    schema = _schema(session)
    return Versions(database_version(session, schema), release_version(), schema)


def _schema(session: connection) -> str:
    """Return the namespace of our tables; if there are none yet, the one in which the role makes tables."""
    with session.cursor() as cursor:
        cursor.execute(_OURS)
        rows = cursor.fetchall()
        if not rows:
            cursor.execute("SELECT current_schema()")
            [(schema,)] = cursor.fetchall()
            if schema is None:
                raise InvalidInputError(
                    "The database's user has no schema to make tables in: none of its search_path "
                    "exists. Make one (CREATE SCHEMA), or change the search_path of the user."
                )
            return str(schema)
    (schema, is_visible), *others = rows
    if others and not is_visible:
        names = ", ".join(str(name) for name, _ in rows)
        raise InvalidInputError(
            f"The database holds several metastores, in the schemas {names}, and the search_path of its user leads to "
            "none of them. Say which one is meant: ALTER ROLE ... IN DATABASE ... SET search_path = ..."
        )
    return str(schema)


def database_version(session: connection, schema: str) -> str:
    """Return the newest migration of the metastore in a schema, to which the search path leads afterwards.

    Return "" if there is none.
    """
    with session.cursor() as cursor:
        cursor.execute("SELECT set_config('search_path', %s, false)", [sessions.search_path(schema)])
        cursor.execute("SELECT to_regclass('alembic_version') IS NOT NULL")
        if not cursor.fetchall()[0][0]:
            return ""
        cursor.execute("SELECT max(version_num) FROM alembic_version")
        return str(cursor.fetchall()[0][0] or "")


def _require_none_of_hive(session: connection) -> None:
    """Raise InvalidInputError if the namespace has a Hive metastore's tables: a hive-site.xml leads there."""
    with session.cursor() as cursor:
        cursor.execute("""SELECT current_database() WHERE to_regclass('"TBLS"') IS NOT NULL""")
        for (database,) in cursor.fetchall():
            raise InvalidInputError(
                f"The database {database} has the tables of a Hive metastore, which this service does not read: give "
                "this service a database of its own (CREATE DATABASE, and --database-url), and see "
                "docs/how-to/start-with-your-hive-site.md."
            )


def _make(url: str, schema: str) -> None:
    """Make the whole schema in one transaction: the script is one message."""
    with closing(_connect(url, schema)) as session, session.cursor() as cursor:
        cursor.execute((directory() / "schema.sql").read_text())


def _run_alembic(url: str, schema: str) -> None:
    """Migrate on a second session, so that a migration does not change the session of the lock."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg2://", creator=lambda: _connect(url, schema, autocommit=False), poolclass=sqlalchemy.NullPool
    )
    try:
        with engine.connect() as session:
            _to(session, "head")
    except sqlalchemy.exc.OperationalError as error:
        raise (error.orig or error) from error
    finally:
        engine.dispose()


def to_revision(session: Lendable, revision: str) -> None:
    """Migrate in the session's open transaction, which Alembic leaves open."""
    import sqlalchemy

    engine = sqlalchemy.create_engine("postgresql+psycopg2://", creator=lambda: session, poolclass=sqlalchemy.NullPool)
    session.lent = True
    try:
        with engine.connect() as borrowed, borrowed.begin():
            _to(borrowed, revision)
    finally:
        engine.dispose()
        session.lent = False


def _to(session: Any, revision: str) -> None:
    import alembic.command
    import alembic.config

    config = alembic.config.Config()
    config.set_main_option("script_location", str(directory()).replace("%", "%%"))
    config.attributes["connection"] = session
    alembic.command.upgrade(config, revision)


def _connect(url: str, schema: str | None = None, *, autocommit: bool = True) -> connection:
    try:
        session = psycopg2.connect(
            **sessions.parameters(
                url,
                "metastore migrate",
                {"lock_timeout": _WAIT_FOR_A_TABLE, "statement_timeout": _ONE_STATEMENT},
                schema=schema,
            ),
            connect_timeout=10,
        )
    except psycopg2.OperationalError as error:
        raise UnavailableError(f"The database does not answer: {network.why(error)}") from error
    session.autocommit = autocommit
    return session
