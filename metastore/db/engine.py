"""The way to PostgreSQL: a pool, one PostgreSQL transaction at a time per thread, errors in the domain's words.

Rules kept here. Time is the database's: ``metastore_now()`` (a SQL function, so that tests can move it for every
process at once) is read once when a transaction begins. A failure before COMMIT means that nothing was done; a
connection lost during COMMIT is an unknown outcome and is never reported as done.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg2
import sqlalchemy
from psycopg2 import errorcodes
from psycopg2.extensions import cursor as Cursor  # noqa: N812
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from metastore.errors import ConflictRetryError, MetastoreError, OutcomeUnknownError, UnavailableError

Row = tuple[Any, ...]

_RETRY = {errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED}
_BUSY = {errorcodes.QUERY_CANCELED, errorcodes.LOCK_NOT_AVAILABLE, errorcodes.TOO_MANY_CONNECTIONS}
_NOT_DURABLE = "SET LOCAL synchronous_commit = off; "


@dataclass(frozen=True)
class PgTx:
    """An open PostgreSQL transaction and the instant it works with."""

    conn: sqlalchemy.Connection
    cursor: Cursor
    now: datetime

    def execute(self, statement: sqlalchemy.Executable, parameters: Any = None) -> sqlalchemy.CursorResult[Any]:
        """Run a SQLAlchemy Core statement."""
        return self.conn.execute(statement, parameters)

    def sql(self, query: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> list[Row]:
        """Run SQL text with psycopg2 placeholders in one round trip; rows of the last statement, [] if it has none."""
        self.cursor.execute(query, parameters)
        return self.cursor.fetchall() if self.cursor.description else []

    @property
    def rowcount(self) -> int:
        """Rows that the last ``sql`` statement touched."""
        return self.cursor.rowcount


class Database:
    """A pool of PostgreSQL connections."""

    def __init__(self, url: str, *, pool_size: int = 10, statement_timeout_ms: int = 60_000,
                 lock_timeout_ms: int = 20_000, pool_timeout_s: float = 30.0) -> None:
        options = f"-c statement_timeout={statement_timeout_ms} -c lock_timeout={lock_timeout_ms}"
        self.engine = sqlalchemy.create_engine(
            sqlalchemy.make_url(url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT",
            pool_size=pool_size, max_overflow=0, pool_timeout=pool_timeout_s, pool_use_lifo=True,
            connect_args={"options": options, "connect_timeout": 10, "application_name": "metastore"})
        self._in_tx = threading.local()

    @contextmanager
    def begin(self, *, durable: bool = True) -> Iterator[PgTx]:
        """One PostgreSQL transaction: committed when the block ends, undone when it raises. Does not nest.

        ``durable=False`` lets COMMIT return before the disk has it (design.md §3.4).
        Raises: UnavailableError, ConflictRetryError (nothing done), OutcomeUnknownError.
        """
        if getattr(self._in_tx, "active", False):
            raise RuntimeError("a PostgreSQL transaction is open in this thread already: pass its PgTx down")
        self._in_tx.active = True
        try:
            yield from self._transaction("" if durable else _NOT_DURABLE)
        finally:
            self._in_tx.active = False

    def once(self, query: str, parameters: Sequence[Any] | dict[str, Any] | None = None, *,
             durable: bool = True) -> list[Row]:
        """Run SQL text (one or several statements) as one transaction in one round trip; rows of the last one.

        Raises: as ``begin``.
        """
        prefix = "" if durable else _NOT_DURABLE
        with self._connection() as conn:
            committing = False
            try:
                with conn.connection.cursor() as cursor:
                    committing = True
                    cursor.execute(prefix + query, parameters)
                    return cursor.fetchall() if cursor.description else []
            except psycopg2.Error as error:
                raise self._translated(conn, error, committing=committing) from error

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()

    def _transaction(self, prefix: str) -> Iterator[PgTx]:
        with self._connection() as conn:
            committing = False
            try:
                with conn.connection.cursor() as cursor:
                    cursor.execute(f"BEGIN; {prefix}SELECT metastore_now()")
                    [(now,)] = cursor.fetchall()
                    try:
                        yield PgTx(conn, cursor, now)
                    except BaseException:
                        self._undo(conn, cursor)
                        raise
                    committing = True
                    cursor.execute("COMMIT")
            except (psycopg2.Error, DBAPIError) as error:
                raise self._translated(conn, error, committing=committing) from error

    @contextmanager
    def _connection(self) -> Iterator[sqlalchemy.Connection]:
        """A pooled connection that answers; one left behind by a restarted PostgreSQL is replaced once."""
        try:
            conn = self.engine.connect()
        except (DBAPIError, PoolTimeoutError) as error:
            raise UnavailableError(f"The metastore's database does not answer, try again: {_text(error)}") from error
        with conn:
            yield conn

    @staticmethod
    def _undo(conn: sqlalchemy.Connection, cursor: Cursor) -> None:
        try:
            cursor.execute("ROLLBACK")
        except psycopg2.Error:
            conn.invalidate()

    def _translated(self, conn: sqlalchemy.Connection, error: Exception, *, committing: bool) -> MetastoreError:
        cause = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(cause, "pgcode", None)
        if conn.connection.dbapi_connection is None or conn.connection.dbapi_connection.closed or code is None:
            conn.invalidate()
            self.engine.dispose()
            if committing:
                return OutcomeUnknownError(
                    "The database connection was lost while the change was being committed: it is either complete or "
                    "absent. Read the object back before repeating the call.")
            return UnavailableError(f"The metastore's database went away, nothing was changed, try again: {_text(error)}")
        if code in _RETRY:
            return ConflictRetryError(f"The database undid the call, nothing was changed, try again: {_text(error)}")
        if code in _BUSY or code.startswith(("53", "57")):
            return UnavailableError(f"The database is busy, nothing was changed, try again: {_text(error)}")
        raise error


def _text(error: Exception) -> str:
    """The first line of a driver's message, without SQLAlchemy's decoration and without connection strings."""
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().split("\n", 1)[0]
