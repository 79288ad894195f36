"""Backups of a database in one file: the base of `metastore db backup`, `restore` and `move` (ADR 0048).

Rules: a backup is one snapshot of the metastore's schema, written beside its place and renamed there. A restore is one
PostgreSQL transaction: emptying the schema, our own migrations up to the backup's, its rows, the migrations since and
the last step of the caller; so a reader finds all of it or nothing, also when this process is killed. A backup is data:
nothing in it is run, and its rows are copied by a role that is no superuser (ADR 0132). No other process may work on
the database meanwhile: sessions of other metastores are refused by name.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2

from metastore.db import archives, failpoints, migrate, origin, programs, sessions
from metastore.db.engine import PgTx, joined
from metastore.db.pool import first_line
from metastore.db.statements import Statements
from metastore.errors import InvalidInputError, MetastoreError, UnavailableError

_SQL = Statements(__file__)

_APPLICATION = "metastore maintenance"
_TIMES = {"statement_timeout": "0", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "0"}
_PATIENCE_S = 10.0  # A session goes on for a moment after its client has closed it.

_OTHERS = """SELECT application_name, coalesce(host(client_addr), 'this machine'), count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name ~ '^metastore'
             GROUP BY 1, 2 ORDER BY 1, 2"""
# Objects of extensions are left out.
_TABLES = """SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%s)
             AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
             AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e') ORDER BY 1"""
_EMPTY = _SQL.text("empty")
_COLUMNS, _FOREIGN_KEYS, _TRIGGERS = _SQL.text("columns"), _SQL.text("foreign_keys"), _SQL.text("triggers")
_CARRIED = "alembic_version"  # The migrations make this table.
_MANIFEST, _CHECKSUMS = "backup_manifest", "SHA256"
_NOT_SAVED = "txn_id_block"  # This table is unlogged.


class InUseError(MetastoreError):
    """Error: metastores have sessions in a database that only one process may work on now."""


class NotEmptyError(MetastoreError):
    """Error: the target of a restore is not empty."""


def write(url: str, target: Path) -> None:
    """Write the metastore in a database to a file, as of one instant; servers may run meanwhile.

    Raises: InvalidInputError, UnavailableError.
    """
    versions = _metastore(url)
    if target.exists():
        raise InvalidInputError(f"{target} exists. A backup is never written over another file: choose another name.")
    _dump(url, versions.schema, target)


def move(url: str, to: str, *, replace: bool) -> dict[str, int]:
    """Move everything into another database, and close this one for every release; return the number of rows by table.

    Raises: as `restore`; nothing is changed then. If the process is killed, both may remain: then move again, with
    ``replace``.
    """
    versions = _current(url)
    with _alone(url) as raw, raw.cursor() as cursor, TemporaryDirectory() as directory:
        cursor.execute("SELECT set_config('search_path', %s, false)", [sessions.search_path(versions.schema)])
        names = sorted(migrate.table_names() - {_NOT_SAVED})
        cursor.execute(f"LOCK TABLE {', '.join(names)} IN SHARE MODE")  # Writers wait, and are refused afterwards.
        file = Path(directory) / "moved"
        _dump(url, versions.schema, file)
        cursor.execute("LOCK TABLE alembic_version")  # A new server waits, and then reads that the database was moved.
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
        part.unlink(missing_ok=True)  # A process that was killed left it.
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # It has names and texts of statements.
        # Unlogged tables hold state of a running PostgreSQL, which does not hold for its copy (ADR 0003).
        programs.run(
            program,
            "--format=custom",
            "--no-owner",
            "--no-privileges",
            "--no-unlogged-table-data",
            "--lock-wait-timeout=60s",
            "--encoding=UTF8",
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
    """Write a copy of a whole embedded PostgreSQL to a directory; archived WAL can be replayed from there.

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
            f"--manifest-checksums={_CHECKSUMS}",
            env=environment,
        )
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def digest(source: Path) -> str:
    """Return the SHA-256 of a backup's file, or of a base backup's manifest, which lists those of its files.

    Raises: InvalidInputError for a directory without one.
    """
    told = source / _MANIFEST if source.is_dir() else source
    if not told.is_file():
        raise InvalidInputError(f"{source} is no base backup: it has no {_MANIFEST}.")
    with told.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def require_digest(source: Path, wanted: str) -> None:
    """Raise InvalidInputError for a backup that does not have this digest."""
    found = digest(source)
    if found != wanted.strip().lower():
        raise InvalidInputError(f"{source} has the digest {found}, not {wanted}: it is another backup, or was changed.")
    if source.is_dir() and (wrong := _differing(source)):
        raise InvalidInputError(f"{source} was changed: {', '.join(wrong[:5])} is not what {_MANIFEST} says.")


def _differing(base: Path) -> list[str]:
    """Return the files of a base backup that differ from its manifest, except WAL, which has checks of its own.

    pg_verifybackup is not used, because that of the embedded PostgreSQL ends with a segmentation fault.
    """
    listed = {
        file.get("Path"): file.get("Checksum") if file.get("Checksum-Algorithm") == _CHECKSUMS else None
        for file in json.loads((base / _MANIFEST).read_bytes())["Files"]
    }
    there = {str(path.relative_to(base)): path for path in base.rglob("*") if path.is_symlink() or not path.is_dir()}
    del there[_MANIFEST]
    checked = {name: path for name, path in there.items() if not name.startswith("pg_wal/")}
    wrong = {name for name, path in checked.items() if path.is_symlink() or listed.get(name) != digest(path)}
    return sorted(wrong | (listed.keys() - there.keys()))


def restore(url: str, source: Path, *, replace: bool, last: Callable[[PgTx], None]) -> None:
    """Replace a database's content by a backup. ``last``: runs as the last step of the same transaction.

    ``replace``: drop the metastore that is there. Raises: NotEmptyError, InUseError, InvalidInputError,
    UnavailableError; nothing is changed then.
    """
    archive = archives.Archive.of(source)
    version, schema = archive.version(), archive.schema
    with _alone(url) as raw, raw.cursor() as cursor:
        _make_room(raw, schema, replace=replace)
        cursor.execute("SELECT set_config('search_path', %s, false)", [sessions.search_path(schema)])
        migrate.create_within(raw, version)
        _load(raw, archive)
        migrate.upgrade_within(raw)
        last(joined(raw))
        origin.note(joined(raw).sql)
        failpoints.hit("restore.before_commit")


def change(url: str, work: Callable[[PgTx], None]) -> None:
    """Run ``work`` on a database in one PostgreSQL transaction while no metastore uses it.

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
    """Open a session in one transaction, committed at the end of the block, on a database that no metastore uses.

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
    """Raise InUseError if another metastore is connected; wait for a process that has just ended."""
    others = _others(cursor)
    ends_at = time.monotonic() + _PATIENCE_S
    while others and time.monotonic() < ends_at:
        cursor.execute("SELECT pg_sleep(0.1)")
        others = _others(cursor)
    if others:
        raise InUseError(f"Metastores are connected to the database: {', '.join(others)}. Stop them, then try again.")


def _others(cursor: Any) -> list[str]:
    cursor.execute("SELECT pg_stat_clear_snapshot()")  # Without this the answer stays the same in a transaction.
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


def _load(raw: migrate.Lendable, archive: archives.Archive) -> None:
    """Copy a backup's rows into the tables of its release without triggers, then check foreign keys."""
    with raw.cursor() as cursor:
        cursor.execute(_COLUMNS)
        tables: dict[str, list[str]] = {name: columns for name, columns in cursor.fetchall() if name != _CARRIED}
        cursor.execute(_FOREIGN_KEYS)
        keys = cursor.fetchall()
        cursor.execute(_TRIGGERS)
        triggers = cursor.fetchall()
        for table, name, _ in keys:
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        for table, name in triggers:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        emptied = [name for name, columns in tables.items() if columns]
        cursor.execute(f"TRUNCATE {', '.join(map(_quoted, emptied))}")
        with _no_superuser(cursor):
            _copy(cursor, archive, tables)
        for table, name, definition in keys:
            cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
        for table, name in triggers:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {name}")


def _copy(cursor: Any, archive: archives.Archive, tables: dict[str, list[str]]) -> None:
    missing = {name for name, columns in tables.items() if columns} - {_NOT_SAVED}
    with archive.content(tables) as content:
        for item in content:
            archives.require_known(archive, item, tables)
            if isinstance(item, archives.SequenceState):
                cursor.execute("SELECT setval(%s, %s, %s)", [_quoted(item.name), item.value, item.is_called])
                continue
            cursor.execute("SELECT set_config('client_encoding', %s, true)", [item.encoding])
            columns = ", ".join(map(_quoted, item.columns))
            cursor.copy_expert(f"COPY {_quoted(item.table)} ({columns}) FROM STDIN", item)
            missing.discard(item.table)
    if missing:
        raise InvalidInputError(
            f"{archive.source} has no rows of {', '.join(sorted(missing))}, not even none: it is not whole. "
            "Nothing was changed."
        )


@contextmanager
def _no_superuser(cursor: Any) -> Iterator[None]:
    """Take a role in this block that may only add rows, even if the session's role may do everything."""
    cursor.execute("SELECT current_setting('is_superuser') = 'on', quote_ident(current_schema())")
    [(is_superuser, schema)] = cursor.fetchall()
    if not is_superuser:
        yield
        return
    role = f"metastore_restore_{secrets.token_hex(8)}"
    cursor.execute(
        f"CREATE ROLE {role} NOLOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; "
        f"GRANT INSERT ON ALL TABLES IN SCHEMA {schema} TO {role}; "
        f"GRANT UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}; SET LOCAL ROLE {role}"
    )
    yield  # An error rolls back the role with everything else.
    cursor.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


def _quoted(name: str) -> str:
    return sessions.search_path(name)


def _major(url: str) -> int:
    try:
        with closing(psycopg2.connect(**sessions.parameters(url, _APPLICATION, {}), connect_timeout=10)) as session:
            return int(session.server_version) // 10_000
    except psycopg2.OperationalError as error:
        raise UnavailableError(f"The database does not answer: {first_line(error)}") from error
