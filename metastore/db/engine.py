"""Access to PostgreSQL: one PostgreSQL transaction at a time per thread or fiber, errors in the domain's words.

Rules: time is the database's: ``metastore_now()`` (a SQL function, so that tests can move it for every process at once)
is read once when a transaction begins. A failure before COMMIT means that nothing was done; a connection lost during
COMMIT is an unknown outcome and is never reported as done.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import psycopg2
from psycopg2 import errorcodes
from psycopg2.extensions import BYTES, connection, register_type

from metastore.db import failpoints, sessions
from metastore.db.fibers import wait
from metastore.db.pool import ConnectionPool, PooledConnection, first_line
from metastore.db.prepared import Prepared
from metastore.errors import (
    ConflictRetryError,
    InvalidRequestError,
    MetastoreError,
    OutcomeUnknownError,
    UnavailableError,
)

Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any] | None

_RETRY = {errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED}
_BUSY = {errorcodes.LOCK_NOT_AVAILABLE, errorcodes.READ_ONLY_SQL_TRANSACTION}
_BUSY_CLASSES = (errorcodes.CLASS_INSUFFICIENT_RESOURCES, errorcodes.CLASS_OPERATOR_INTERVENTION)
_BAD_CLASSES = (errorcodes.CLASS_DATA_EXCEPTION, errorcodes.CLASS_PROGRAM_LIMIT_EXCEEDED)
_NOT_DURABLE = "SET LOCAL synchronous_commit = off; "
_CURSOR = "DECLARE answer BINARY NO SCROLL CURSOR FOR {}; FETCH {} FROM answer"
"""The only way in which a query without a protocol of its own is answered in binary."""
_BYTEA = 17
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
_GRACE_S = 10.0
_in_tx: ContextVar[tuple["Database", ...]] = ContextVar("in_tx", default=())


class PgTx:
    """An open PostgreSQL transaction. BEGIN travels with its first statement."""

    __slots__ = ("_begin", "_last", "_lease", "_now", "committing", "finished")

    def __init__(self, lease: "_Lease", begin: str) -> None:
        """Prepare a transaction; ``begin``: SQL before the first statement."""
        self._lease, self._begin = lease, begin
        self._now: datetime | None = None
        self._last: tuple[str | Prepared, Parameters] | None = None
        self.committing = self.finished = False

    @property
    def now(self) -> datetime:
        """The instant of this transaction, which metastore_now() returns in each of its statements."""
        if self._now is None:
            [(self._now,)] = self.sql("SELECT metastore_now()")
        return self._now

    @property
    def rowcount(self) -> int:
        """The number of rows that the last ``sql`` statement touched."""
        return self._lease.cursor.rowcount

    def sql(self, query: str | Prepared, parameters: Parameters = None) -> list[Row]:
        """Run SQL text with psycopg2 placeholders in one round trip.

        Return the last statement's rows, [] if it has none.
        """
        if self._begin:
            self._lease.run_first(self._begin, query, parameters)
            self._begin = ""
        else:
            self._lease.run("", query, parameters)
        return self._lease.rows()

    def binary(self, query: str, parameters: Parameters = None) -> Row:
        """Run a query as ``Database.binary``, in this transaction."""
        [row] = self._in_binary("CLOSE ALL; " + _CURSOR.format(query, "ALL"), parameters)
        return row

    def fetched(self, query: str, parameters: Parameters, most: int) -> Iterator[list[Row]]:
        """Yield the rows of a query, ``most`` at a time, with columns as ``binary`` has them.

        This ends the transaction.
        """
        rows = self._in_binary("CLOSE ALL; " + _CURSOR.format(query, most), parameters)
        while rows:
            yield rows
            rows = self._in_binary(f"FETCH {most} FROM answer", None) if len(rows) == most else []

    def _in_binary(self, query: str, parameters: Parameters) -> list[Row]:
        self._lease.in_binary = True
        try:
            return self.sql(query, parameters)
        finally:
            self._lease.in_binary = False

    def at_commit(self, query: str | Prepared, parameters: Parameters) -> None:
        """Run SQL behind all other statements, in the round trip of COMMIT; of several only the last waits for it."""
        if self._last is not None:
            self.sql(*self._last)
        self._last = query, parameters

    def finish(self, query: str | Prepared, parameters: Parameters = None) -> None:
        """Run the last SQL and COMMIT in one round trip. No statement may follow; this returns no rows."""
        failpoints.hit("pg.before_commit")
        self.committing = True
        self._lease.run(self._begin, query, parameters, "; COMMIT")
        self._begin, self.finished = "", True
        failpoints.hit("pg.after_commit")

    def commit(self) -> None:
        """Commit the transaction, if it was begun and has not ended."""
        if self._last is not None:
            self.finish(*self._last)
        if self.finished or self._begin:
            return
        failpoints.hit("pg.before_commit")
        self.committing = True
        self._lease.run("", "COMMIT", None)
        self.finished = True
        failpoints.hit("pg.after_commit")

    def undo(self) -> None:
        """Roll back; if that fails the pool closes the connection, which undoes the work as well."""
        if not (self.finished or self._begin or self._lease.link.raw.closed):
            try:
                self._lease.run("", "ROLLBACK", None)
            except psycopg2.Error:
                self._lease.link.raw.close()


class _Lease:
    """A connection on loan from the pool, and its cursor."""

    __slots__ = ("_pool", "cursor", "in_binary", "link")

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self.in_binary = False
        """True if the next query is a binary cursor: its columns are taken as they come."""
        self._take()

    def _take(self) -> None:
        self.link = self._pool.take()
        self.cursor = self.link.raw.cursor()

    def run(self, before: str, query: str | Prepared, parameters: Parameters, after: str = "") -> None:
        """Send SQL; statements that this connection does not know yet are prepared on the way."""
        if isinstance(query, str):
            self._send(before + query + after, parameters)
            return
        known = self.link.prepared
        if query.names <= known:
            self._send(before + query.execute + after, parameters)
            return
        self.link.spoiled = True  # If this fails, it is unknown which statements were prepared before.
        self._send(before + query.introduction(known) + after, parameters)
        self.link.spoiled = False
        known |= query.names

    def _send(self, text: str, parameters: Parameters) -> None:
        if self.in_binary:
            register_type(BYTES, self.cursor)
            self._types()[_BYTEA] = BYTES
        else:
            self._types().clear()
        try:
            self.cursor.execute(text, parameters)
            wait(self.link.raw, self._pool.silence_s)
        except TimeoutError as error:
            self.link.raw.close()
            raise psycopg2.OperationalError(f"PostgreSQL has been silent for {self._pool.silence_s:g} s") from error
        except ValueError as error:  # psycopg2 raises this for a NUL, before anything is sent.
            raise InvalidRequestError(
                "A text of the request contains a NUL character, which cannot be stored."
            ) from error

    def _types(self) -> dict[int, Any]:
        """Return how the cursor reads columns, where this differs from its connection."""
        return self.cursor.string_types or {}

    def run_first(self, before: str, query: str | Prepared, parameters: Parameters) -> None:
        """Send the first SQL of a transaction.

        If the connection is dead, repeat it on another: no work was done yet.
        """
        try:
            self.run(before, query, parameters)
        except psycopg2.Error:
            if not self.link.raw.closed:
                raise
            self.give_back()
            self._take()
            self.run(before, query, parameters)

    def rows(self) -> list[Row]:
        """Return the rows of the last statement."""
        return self.cursor.fetchall() if self.cursor.description else []

    def give_back(self) -> None:
        """Return the connection to the pool."""
        self.cursor.close()
        self._pool.give(self.link)


class _Joined(_Lease):
    """A lease of another owner's connection and transaction.

    It waits for PostgreSQL as psycopg2 does, blocking its thread.
    """

    __slots__ = ()

    def __init__(self, raw: connection) -> None:
        self.link = PooledConnection(raw)
        self.cursor, self.in_binary = raw.cursor(), False

    def _send(self, text: str, parameters: Parameters) -> None:
        self.cursor.execute(text, parameters)


def joined(raw: connection) -> PgTx:
    """Return the transaction that a blocking connection is in; its beginner ends it, and gets psycopg2's errors."""
    return PgTx(_Joined(raw), "")


class Database:
    """A PostgreSQL database, through a pool of connections."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        statement_timeout_ms: int = 60_000,
        lock_timeout_ms: int = 20_000,
        pool_timeout_s: float = 30.0,
        schema: str = sessions.DEFAULT_SCHEMA,
    ) -> None:
        """Describe the database; ``schema``: the namespace of our tables, which `migrate.upgrade` returns."""
        self.url, self._schema = url, schema
        self._settings = {
            "statement_timeout": str(statement_timeout_ms),
            "lock_timeout": str(lock_timeout_ms),
            **sessions.PLANNING,
        }
        self.pool = ConnectionPool(url, pool_size, pool_timeout_s, self._settings, schema)
        if statement_timeout_ms:  # PostgreSQL itself ends what takes too long; if it is frozen we do
            self.pool.silence_s = 2 * statement_timeout_ms / 1000 + _GRACE_S

    def check(self) -> None:
        """Raise InvalidInputError at the start of a process if sessions lack settings that correctness rests on.

        Raises: also as ``once``.
        """
        sessions.check(self.once, self._settings, self._schema)

    @contextmanager
    def begin(self, *, durable: bool = True, snapshot: bool = False) -> Iterator[PgTx]:
        """Open one PostgreSQL transaction: committed when the block ends, undone when it raises. It does not nest.

        ``durable=False`` lets COMMIT return before the disk has it (ADR 3). ``snapshot``: the transaction only reads,
        and all its statements see the same.
        Raises: UnavailableError, ConflictRetryError (nothing done), OutcomeUnknownError.
        """
        self._refuse_nesting()
        lease = _Lease(self.pool)
        pg = PgTx(lease, _SNAPSHOT if snapshot else "BEGIN; " if durable else "BEGIN; " + _NOT_DURABLE)
        outside = _in_tx.set((*_in_tx.get(), self))
        try:
            try:
                yield pg
            except BaseException:
                pg.undo()
                raise
            pg.commit()
        except psycopg2.Error as error:
            raise _translated(lease.link, error, committing=pg.committing) from error
        finally:
            _in_tx.reset(outside)
            lease.give_back()

    def once(
        self, query: str | Prepared, parameters: Parameters = None, *, durable: bool = True, in_binary: bool = False
    ) -> list[Row]:
        """Run SQL text (one or several statements) as one transaction in one round trip.

        Return the last statement's rows.
        ``in_binary``: the text is for a cursor, see ``binary``.
        Raises: as ``begin``.
        """
        self._refuse_nesting()
        lease = _Lease(self.pool)
        lease.in_binary = in_binary
        try:
            failpoints.hit("pg.before_commit")
            lease.run("" if durable else _NOT_DURABLE, query, parameters)
            failpoints.hit("pg.after_commit")
            return lease.rows()
        except psycopg2.Error as error:
            raise _translated(lease.link, error, committing=True) from error
        finally:
            lease.give_back()

    def binary(self, query: str, parameters: Parameters = None) -> Row:
        """Return the one row of a query whose columns are bytea or text: as bytes, a text in UTF-8.

        Long answers take a third of the time in this form, since they do not travel as hexadecimal text.
        Raises: as ``begin``.
        """
        [row] = self.once(_CURSOR.format(query, "ALL"), parameters, in_binary=True)
        return row

    def threads(self, wanted: int) -> int:
        """Return how many threads of one loop may work at a time: as wanted, but at most half of the pool."""
        return max(1, min(wanted, self.pool.size // 2))

    def close(self) -> None:
        """Close every pooled connection."""
        self.pool.close()

    def _refuse_nesting(self) -> None:
        """Raise an error for a second connection of a thread: a pool would deadlock."""
        if self in _in_tx.get():
            raise RuntimeError("a PostgreSQL transaction is open in this thread already: pass its PgTx down")


def _translated(link: PooledConnection, error: psycopg2.Error, *, committing: bool) -> MetastoreError:
    """Return the error to raise instead; programming errors and violated constraints stay as they are."""
    code = error.pgcode
    if link.raw.closed:
        if committing:
            return OutcomeUnknownError(
                "The database connection was lost while the change was being committed: it is either complete or "
                "absent. Read the object back before repeating the call."
            )
        return UnavailableError(
            f"The metastore's database went away, nothing was changed, try again: {first_line(error)}"
        )
    if code in _RETRY:
        return ConflictRetryError(f"The database undid the call, nothing was changed, try again: {first_line(error)}")
    if code is not None and (code in _BUSY or code[:2] in _BUSY_CLASSES):
        return UnavailableError(f"The database is busy, nothing was changed, try again: {first_line(error)}")
    if code is not None and code[:2] in _BAD_CLASSES:
        return InvalidRequestError(f"The request holds a value that cannot be stored: {first_line(error)}.")
    raise error
