"""Bring a database's schema to this release's, once, however many servers start at the same time.

Rule: migrations are numbered without gaps, applied in order under one advisory lock, each in a transaction of its own.
A database whose schema is newer than this release is refused: an older server would write rows that the newer one
cannot trust. A server that finds the schema current pays one query and never loads Alembic.
"""

from pathlib import Path
from typing import NamedTuple

import sqlalchemy
from sqlalchemy.exc import DBAPIError, OperationalError

import metastore
from metastore.errors import MetastoreError, UnavailableError

ALEMBIC_ALONE = "Run `metastore db upgrade` instead: it takes the lock that keeps two upgrades apart."

_LOCK = 0x6D657461  # "meta"; the key of the advisory lock
_WAIT_FOR_OTHERS = "300s"   # another server may be migrating
_WAIT_FOR_A_TABLE = "10s"   # a migration must not queue behind a long reader and hold up everybody behind itself
_ONE_STATEMENT = "600s"


class SchemaTooNewError(MetastoreError):
    """The database was migrated by a newer release."""


class Versions(NamedTuple):
    """What the database has and what this release needs; ``""`` is an empty database."""

    database: str
    release: str


def directory() -> Path:
    """Where the migrations are: inside the package when installed, beside it in a checkout."""
    package = Path(metastore.__file__).parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def release_version() -> str:
    """The newest migration of this release."""
    return max(path.name[:4] for path in (directory() / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


def versions(url: str) -> Versions:
    """Compare the database's schema with this release's.

    Raises: UnavailableError.
    """
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            return Versions(_database_version(connection), release_version())
    except DBAPIError as error:
        raise UnavailableError(f"The database does not answer: {_first_line(error)}") from error
    finally:
        engine.dispose()


def upgrade(url: str) -> Versions:
    """Apply what is missing; returns the versions as they were before.

    Serialises on: an advisory lock of the database. Raises: SchemaTooNewError, UnavailableError.
    """
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            found = _checked(connection)
            if found.database == found.release:
                return found
            connection.exec_driver_sql(f"SET statement_timeout = '{_WAIT_FOR_OTHERS}'")
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({_LOCK})")
            found = _checked(connection)
            connection.exec_driver_sql(
                f"SET lock_timeout = '{_WAIT_FOR_A_TABLE}'; SET statement_timeout = '{_ONE_STATEMENT}'")
            connection.commit()
            _run_alembic(connection)
            return found
    except DBAPIError as error:
        if isinstance(error, OperationalError):
            raise UnavailableError(f"The schema could not be brought up to date: {_first_line(error)}") from error
        raise
    finally:
        engine.dispose()   # the session's end releases the advisory lock


def _checked(connection: sqlalchemy.Connection) -> Versions:
    found = Versions(_database_version(connection), release_version())
    if found.database > found.release:
        raise SchemaTooNewError(
            f"The database has schema version {found.database}, made by a newer release of the metastore; this release "
            f"knows versions up to {found.release}. Start the newer release, or restore the database from a backup.")
    return found


def _database_version(connection: sqlalchemy.Connection) -> str:
    known = connection.exec_driver_sql("SELECT to_regclass('alembic_version') IS NOT NULL").scalar()
    version = connection.exec_driver_sql("SELECT max(version_num) FROM alembic_version").scalar() if known else None
    connection.commit()
    return str(version or "")


def _run_alembic(connection: sqlalchemy.Connection) -> None:
    import alembic.command
    import alembic.config

    config = alembic.config.Config()
    config.set_main_option("script_location", str(directory()).replace("%", "%%"))
    config.attributes["connection"] = connection
    alembic.command.upgrade(config, "head")


def _engine(url: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(
        sqlalchemy.make_url(url).set(drivername="postgresql+psycopg2"), poolclass=sqlalchemy.NullPool,
        connect_args={"connect_timeout": 10, "application_name": "metastore migrate"})


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().split("\n", 1)[0]
