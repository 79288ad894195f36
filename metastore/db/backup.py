"""A database in one file, and back: what `metastore db backup`, `restore` and `move` rest on (ADR 0048).

Rules kept here. A backup is one snapshot of the metastore's schema, written beside its place and renamed there. A
restore is one PostgreSQL transaction: emptying the schema, the rows, the migrations of this release and what the caller
does last; so whoever looks finds all of it or nothing, also when this process is killed. Nobody else may work on the
database meanwhile: sessions of other metastores are refused by name.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import psycopg2

from metastore.db import failpoints, migrate, origin, programs, sessions
from metastore.db.engine import PgTx, joined
from metastore.db.pool import first_line
from metastore.db.statements import Statements
from metastore.errors import InvalidInputError, MetastoreError, UnavailableError

_SQL = Statements(__file__)

_APPLICATION = "metastore maintenance"
_TIMES = {"statement_timeout": "0", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "0"}
_PATIENCE_S = 10.0  # a session goes on for a moment when its client has closed it
_NOT_FOR_US = re.compile(rb"\\(un)?restrict |SET transaction_timeout ")  # psql's own, and of PostgreSQL 17 on
_COPY = re.compile(rb"COPY .* FROM stdin;\n")
_SCHEMA = re.compile(r"^\d+; \d+ \d+ TABLE (.+) txn_counter ", re.MULTILINE)

_OTHERS = """SELECT application_name, coalesce(host(client_addr), 'this machine'), count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name ~ '^metastore'
             GROUP BY 1, 2 ORDER BY 1, 2"""
# Not what belongs to extensions.
_TABLES = """SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%s)
             AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
             AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e') ORDER BY 1"""
_EMPTY = _SQL.text("empty")


class InUseError(MetastoreError):
    """Metastores have sessions in a database that only one process may work on now."""


class NotEmptyError(MetastoreError):
    """There is something where a backup is to be restored."""


def write(url: str, target: Path) -> None:
    """Write the metastore in a database to a file, as of one instant; servers may run meanwhile.

    Raises: InvalidInputError, UnavailableError.
    """
    versions = _metastore(url)
    if target.exists():
        raise InvalidInputError(f"{target} exists. A backup is never written over another file: choose another name.")
    _dump(url, versions.schema, target)


def move(url: str, to: str, *, replace: bool) -> dict[str, int]:
    """Move everything into another database, and let no release work on this database any more; rows by table.

    Raises: as `restore`; nothing is changed then. A process that is killed may leave both: then move again, with
    ``replace``.
    """
    versions = _current(url)
    with _alone(url) as raw, raw.cursor() as cursor, TemporaryDirectory() as directory:
        cursor.execute("SELECT set_config('search_path', %s, false)", [sessions.search_path(versions.schema)])
        names = sorted(migrate.table_names() - {"txn_id_block"})  # which is unlogged
        cursor.execute(f"LOCK TABLE {', '.join(names)} IN SHARE MODE")  # writers wait, and are refused afterwards
        file = Path(directory) / "moved"
        _dump(url, versions.schema, file)
        cursor.execute("LOCK TABLE alembic_version")  # whoever starts now waits, and then reads that it was moved
        require_alone(cursor)
        there = _counts(joined(raw).sql, names)

        def compared(pg: PgTx) -> None:
            arrived = _counts(pg.sql, names)
            if arrived != there:
                raise UnavailableError(
                    "Not every row arrived, nothing was changed: "
                    + ", ".join(
                        f"{name} has {arrived[name]} of {there[name]}" for name in names if arrived[name] != there[name]
                    )
                )

        restore(to, file, replace=replace, last=compared)
        failpoints.hit("move.before_commit")
        cursor.execute("UPDATE alembic_version SET version_num = %s || version_num", [migrate.MOVED])
    return there


def _metastore(url: str) -> migrate.Versions:
    versions = migrate.versions(url)
    migrate.require_here(versions)
    if not versions.database:
        raise InvalidInputError("The database holds no metastore: there is nothing to save.")
    return versions


def _current(url: str) -> migrate.Versions:
    versions = _metastore(url)
    if versions.database != versions.release:
        raise InvalidInputError(
            f"The database has schema version {versions.database}, this release needs "
            f"{versions.release}: run `metastore db upgrade`, or use the database's release."
        )
    return versions


def _counts(sql: Callable[[str], list[Any]], names: Iterable[str]) -> dict[str, int]:
    [counts] = sql("SELECT " + ", ".join(f"(SELECT count(*) FROM {name})" for name in names))
    return dict(zip(names, counts, strict=True))


def _dump(url: str, schema: str, target: Path) -> None:
    program = programs.fitting("pg_dump", _major(url))
    part = target.with_name(f"{target.name}.part")
    reached, environment = programs.reached(url)
    try:
        # Unlogged tables hold what is true of a PostgreSQL that runs, not of its copy (ADR 0005).
        programs.run(
            program,
            "--format=custom",
            "--no-owner",
            "--no-privileges",
            "--no-unlogged-table-data",
            "--lock-wait-timeout=60s",
            f"--schema={sessions.search_path(schema)}",
            f"--file={part}",
            f"--dbname={reached}",
            env=environment,
        )
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def write_base(url: str, target: Path) -> None:
    """Write a copy of a whole embedded PostgreSQL to a directory, from which archived WAL leads on.

    Raises: InvalidInputError, UnavailableError.
    """
    if target.exists():
        raise InvalidInputError(f"{target} exists. A backup is never written over another one: choose another name.")
    program = programs.fitting("pg_basebackup", _major(url))
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    reached, environment = programs.reached(url)
    try:
        programs.run(
            program,
            f"--dbname={reached}",
            f"--pgdata={part}",
            "--wal-method=stream",
            "--checkpoint=fast",
            env=environment,
        )
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def restore(url: str, source: Path, *, replace: bool, last: Callable[[PgTx], None]) -> None:
    """Let a database hold what a backup holds; ``last``: what to do before anybody sees it.

    ``replace``: drop the metastore that is there. Raises: NotEmptyError, InUseError, InvalidInputError,
    UnavailableError; nothing is changed then.
    """
    program = programs.fitting("pg_restore", 0)
    schema = _schema_in(program, source)
    with _alone(url) as raw, raw.cursor() as cursor:
        _make_room(raw, schema, replace=replace)
        with _script(program, schema, source) as script:
            _play(cursor, script)
        cursor.execute("SELECT set_config('search_path', %s, false)", [sessions.search_path(schema)])
        migrate.upgrade_within(raw)
        last(joined(raw))
        origin.note(joined(raw).sql)
        failpoints.hit("restore.before_commit")


def change(url: str, work: Callable[[PgTx], None]) -> None:
    """Work on a database in one PostgreSQL transaction while no metastore does.

    Raises: InUseError, InvalidInputError, UnavailableError.
    """
    versions = _current(url)
    with _alone(url) as raw:
        with raw.cursor() as cursor:
            cursor.execute("SELECT set_config('search_path', %s, false)", [sessions.search_path(versions.schema)])
        work(joined(raw))
        origin.note(joined(raw).sql)


@contextmanager
def _alone(url: str) -> Iterator[migrate.Lendable]:
    """A session in one transaction, committed at the end of the block, on a database on which no metastore works.

    Servers that start meanwhile wait for the lock of migrations, or meet tables that are locked.
    """
    try:
        with closing(
            psycopg2.connect(
                **sessions.parameters(url, _APPLICATION, _TIMES),
                connect_timeout=10,
                connection_factory=migrate.Lendable,
            )
        ) as raw:
            with raw.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [migrate.LOCK])
                require_alone(cursor)
            yield raw
            raw.commit()
    except psycopg2.Error as error:
        raise UnavailableError(f"The database undid everything, nothing was changed: {first_line(error)}") from error


def require_alone(cursor: Any) -> None:
    """See that no other metastore is connected; a process that has just ended is waited for. Raises: InUseError."""
    others = _others(cursor)
    ends_at = time.monotonic() + _PATIENCE_S
    while others and time.monotonic() < ends_at:
        cursor.execute("SELECT pg_sleep(0.1)")
        others = _others(cursor)
    if others:
        raise InUseError(f"Metastores are connected to the database: {', '.join(others)}. Stop them, then try again.")


def _others(cursor: Any) -> list[str]:
    cursor.execute("SELECT pg_stat_clear_snapshot()")  # else the answer is the same for the whole transaction
    cursor.execute(_OTHERS)
    return [f"{name} from {place} ({count})" for name, place, count in cursor.fetchall()]


def _make_room(raw: migrate.Lendable, schema: str, *, replace: bool) -> None:
    quoted = sessions.search_path(schema)
    with raw.cursor() as cursor:
        cursor.execute(_TABLES, [quoted])
        there = {name for (name,) in cursor.fetchall()}
        if not there:
            cursor.execute("SELECT to_regnamespace(%s) IS NULL", [quoted])
            [(is_missing,)] = cursor.fetchall()
            if is_missing:
                cursor.execute(f"CREATE SCHEMA {quoted}")
            return
        version = migrate.database_version(raw, schema).removeprefix(migrate.MOVED)
        if strange := sorted(there - migrate.table_names()):
            names = ", ".join(strange[:5])
            raise NotEmptyError(
                f"The schema {schema} of the database has version {version}, made by a newer release, with tables that "
                f"this one does not know: {names}. Restore with the newer release, which takes this backup too, or "
                "into a database of its own."
                if version > migrate.release_version()
                else f"The schema {schema} of the database holds what is not a metastore's: {names}. Restore into a "
                "database of its own."
            )
        if not replace:
            raise NotEmptyError(
                f"The database holds a metastore already, in the schema {schema}. Choose an empty "
                "database, or say --replace to drop what it holds."
            )
        cursor.execute(_EMPTY)


def _schema_in(program: Path, source: Path) -> str:
    listed = subprocess.run(  # noqa: S603 - PostgreSQL's own
        [str(program), "--list", str(source)], capture_output=True, text=True, check=False
    )
    match = _SCHEMA.search(listed.stdout)
    if listed.returncode or not match:
        raise InvalidInputError(
            f"{source} is no backup of a metastore: {listed.stderr.strip() or 'it has no table txn_counter'}."
        )
    return match[1]


@contextmanager
def _script(program: Path, schema: str, source: Path) -> Iterator[IO[bytes]]:
    """The backup as SQL, its rows in between."""
    with subprocess.Popen(  # noqa: S603 - PostgreSQL's own
        [str(program), "--no-owner", "--no-privileges", f"--schema={schema}", "--file=-", str(source)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None  # noqa: S101 - for mypy
        assert process.stderr is not None  # noqa: S101
        try:
            yield process.stdout
        except BaseException:
            process.kill()
            raise
        said = process.stderr.read().decode()  # a few lines at most, so that it never filled the pipe
    if process.returncode:
        raise InvalidInputError(programs.failure(program, said))


def _play(cursor: Any, script: Iterable[bytes]) -> None:
    """Run SQL with COPY blocks in it."""
    lines = iter(script)
    text: list[bytes] = []
    for line in lines:
        if _NOT_FOR_US.match(line):
            continue
        text.append(line)
        if _COPY.fullmatch(line):
            copy = text.pop().decode()
            _execute(cursor, text)
            cursor.copy_expert(copy, _Rows(lines))
    _execute(cursor, text)


def _execute(cursor: Any, text: list[bytes]) -> None:
    if any(line.strip() and not line.startswith(b"--") for line in text):
        cursor.execute(b"".join(text))
    text.clear()


class _Rows:
    r"""The rows of a COPY block, up to the line ``\.``, as a file."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Some whole rows, about as many bytes as wanted; ``b""`` at the end."""
        rows: list[bytes] = []
        length = 0
        while not self._ended and (length < size or not rows):
            row = next(self._lines, b"\\.\n")
            self._ended = row == b"\\.\n"
            if not self._ended:
                rows.append(row)
                length += len(row)
        return b"".join(rows)


def _major(url: str) -> int:
    try:
        with closing(psycopg2.connect(**sessions.parameters(url, _APPLICATION, {}), connect_timeout=10)) as session:
            return int(session.server_version) // 10_000
    except psycopg2.OperationalError as error:
        raise UnavailableError(f"The database does not answer: {first_line(error)}") from error
