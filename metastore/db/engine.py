"""The way to PostgreSQL: one PostgreSQL transaction at a time per thread, errors in the domain's words.

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
from psycopg2 import errorcodes
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - a class, whatever its driver calls it

from metastore.db import failpoints
from metastore.db.pool import Link, Pool, first_line
from metastore.errors import ConflictRetryError, MetastoreError, OutcomeUnknownError, UnavailableError

Row = tuple[Any, ...]

_RETRY = {errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED}
_BUSY = {errorcodes.LOCK_NOT_AVAILABLE, errorcodes.READ_ONLY_SQL_TRANSACTION}
_BUSY_CLASSES = (errorcodes.CLASS_INSUFFICIENT_RESOURCES, errorcodes.CLASS_OPERATOR_INTERVENTION)
_NOT_DURABLE = "SET LOCAL synchronous_commit = off; "


@dataclass(frozen=True, slots=True)
class PgTx:
    """An open PostgreSQL transaction and the instant it works with."""

    cursor: Cursor
    now: datetime

    def sql(self, query: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> list[Row]:
        """Run SQL text with psycopg2 placeholders in one round trip; rows of the last statement, [] if it has none."""
        self.cursor.execute(query, parameters)
        return self.cursor.fetchall() if self.cursor.description else []

    @property
    def rowcount(self) -> int:
        """Rows that the last ``sql`` statement touched."""
        return self.cursor.rowcount


class Database:
    """A PostgreSQL database, through a pool of connections."""

    def __init__(self, url: str, *, pool_size: int = 10, statement_timeout_ms: int = 60_000,
                 lock_timeout_ms: int = 20_000, pool_timeout_s: float = 30.0) -> None:
        self.url = url
        self.pool = Pool(url, pool_size, pool_timeout_s, {
            "statement_timeout": str(statement_timeout_ms), "lock_timeout": str(lock_timeout_ms),
            "jit": "off"})  # compiling a statement of a millisecond takes a hundred
        self._in_tx = threading.local()

    @contextmanager
    def begin(self, *, durable: bool = True) -> Iterator[PgTx]:
        """One PostgreSQL transaction: committed when the block ends, undone when it raises. Does not nest.

        ``durable=False`` lets COMMIT return before the disk has it (design.md §3.4).
        Raises: UnavailableError, ConflictRetryError (nothing done), OutcomeUnknownError.
        """
        self._refuse_nesting()
        link, cursor, now = self._open("" if durable else _NOT_DURABLE)
        self._in_tx.active = True
        committing = False
        try:
            try:
                yield PgTx(cursor, now)
            except BaseException:
                _undo(link, cursor)
                raise
            failpoints.hit("pg.before_commit")
            committing = True
            cursor.execute("COMMIT")
            failpoints.hit("pg.after_commit")
        except psycopg2.Error as error:
            raise _translated(link, error, committing=committing) from error
        finally:
            self._in_tx.active = False
            cursor.close()
            self.pool.give(link)

    def once(self, query: str, parameters: Sequence[Any] | dict[str, Any] | None = None, *,
             durable: bool = True) -> list[Row]:
        """Run SQL text (one or several statements) as one transaction in one round trip; rows of the last one.

        Raises: as ``begin``.
        """
        self._refuse_nesting()
        link = self.pool.take()
        try:
            with link.raw.cursor() as cursor:
                failpoints.hit("pg.before_commit")
                cursor.execute(query if durable else _NOT_DURABLE + query, parameters)
                failpoints.hit("pg.after_commit")
                return cursor.fetchall() if cursor.description else []
        except psycopg2.Error as error:
            raise _translated(link, error, committing=True) from error
        finally:
            self.pool.give(link)

    def close(self) -> None:
        """Close every pooled connection."""
        self.pool.close()

    def _refuse_nesting(self) -> None:
        """A second connection while this thread holds one is how a pool deadlocks."""
        if getattr(self._in_tx, "active", False):
            raise RuntimeError("a PostgreSQL transaction is open in this thread already: pass its PgTx down")

    def _open(self, prefix: str) -> tuple[Link, Cursor, datetime]:
        """Begin, on another connection if the first one turns out to be dead: nothing was done yet."""
        for last in (False, True):
            link = self.pool.take()
            cursor = link.raw.cursor()
            try:
                cursor.execute(f"BEGIN; {prefix}SELECT metastore_now()")
                [(now,)] = cursor.fetchall()
            except BaseException as error:
                self.pool.give(link)
                if not isinstance(error, psycopg2.Error):
                    raise
                if last or not link.raw.closed:
                    raise _translated(link, error, committing=False) from error
            else:
                return link, cursor, now
        raise AssertionError("unreachable")


def _undo(link: Link, cursor: Cursor) -> None:
    """Roll back; where that fails the pool closes the connection, which undoes the work as well."""
    if not link.raw.closed:
        try:
            cursor.execute("ROLLBACK")
        except psycopg2.Error:
            link.raw.close()


def _translated(link: Link, error: psycopg2.Error, *, committing: bool) -> MetastoreError:
    """The error to raise instead; programming errors and violated constraints are raised as they are."""
    code = error.pgcode
    if link.raw.closed:
        if committing:
            return OutcomeUnknownError(
                "The database connection was lost while the change was being committed: it is either complete or "
                "absent. Read the object back before repeating the call.")
        return UnavailableError(
            f"The metastore's database went away, nothing was changed, try again: {first_line(error)}")
    if code in _RETRY:
        return ConflictRetryError(f"The database undid the call, nothing was changed, try again: {first_line(error)}")
    if code is not None and (code in _BUSY or code[:2] in _BUSY_CLASSES):
        return UnavailableError(f"The database is busy, nothing was changed, try again: {first_line(error)}")
    raise error
