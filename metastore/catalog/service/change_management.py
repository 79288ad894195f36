"""Change management: the only place that removes data of tables. Files that a replica may still need go to ``cmroot``.

Rule: a file is in ``cmroot`` before it leaves its table, whole and under the name that a replica looks for. A failure
leaves the file where it was, and the remover tries again: no file is removed that could not be kept. ``kept`` is
``needed``'s answer, from the transaction that decides about the removal (ADR 0086).
"""

from dataclasses import dataclass
from datetime import timedelta
from time import time_ns

from metastore.catalog.model import Table
from metastore.catalog.rules import change_management as rules
from metastore.catalog.store import databases
from metastore.db.engine import Database, PgTx
from metastore.files import Files
from metastore.roots import Roots
from metastore.telemetry.logs import get_logger
from metastore.txns.write_events.rules import encoded_of_insert

_log = get_logger(__name__)


def needed(pg: PgTx, files: Files, table: Table) -> bool:
    """Return True if a table's files are to be kept when they go. No query is sent if change management is off."""
    if not files.cmroot:
        return False
    database = databases.select_database(pg, table.name.database)
    return database is not None and rules.is_needed(database.parameters, table.type)


def remove(files: Files, location: str, *, kept: bool, trash: str | None = None) -> None:
    """Remove a file or directory, or move it to its place in the ``trash``; an absent path is fine. Raises: OSError."""
    recycle(files, location, kept=kept)
    if trash is None:
        files.delete(location)
    elif files.exists(location):  # As Hadoop: what has the place already keeps it.
        files.rename(location, f"{trash}{time_ns() // 1_000_000}" if files.exists(trash) else trash)


def empty(files: Files, location: str, *, kept: bool) -> None:
    """Remove everything in a directory. Raises: OSError."""
    recycle(files, location, kept=kept)
    files.delete_children(location)


def recycle(files: Files, location: str, *, kept: bool) -> None:
    """Move files that are to be ``kept`` to ``cmroot``, before each removal. Raises: OSError."""
    if files.cmroot and (Roots((location,)).covers(files.cmroot) or Roots((files.cmroot,)).covers(location)):
        raise OSError(f"{location} is not removed: {files.cmroot} keeps there what replicas may still need")
    if kept:
        keep(files, location, move=True)


def keep(files: Files, location: str, *, move: bool = False) -> None:
    """Bring a table's files, or copies, to ``cmroot``; do nothing if change management is off. Raises: OSError.

    This is for a directory that gets another name: events name its files by the old one.
    """
    if not files.cmroot:
        return
    replicated = rules.replicated(files.files_of(location), location)
    for uri in replicated:
        name = rules.name_in_cmroot(uri.rpartition("/")[2], files.checksum(uri))
        files.put_over(uri, f"{files.cmroot.rstrip('/')}/{name}", move=move)
    _log.info("files_kept_for_replicas", location=location, files=len(replicated), cmroot=files.cmroot, moved=move)


def event_files(files: Files, location: str) -> list[str]:
    """Return the files of a directory as events name them for a replica: with checksum and ``cmroot``.

    As in Hive, hidden files and directories are left out. Source: CAT-E6. Raises: OSError.
    """
    if not files.exists(location):
        return []
    names = [entry.path for entry in files.listing(location) if not entry.is_dir and "/" not in entry.path]
    uris = [f"{location}/{name}" for name in names if not name.startswith((".", "_"))]
    return encoded_of_insert(uris, [files.checksum(uri) for uri in uris], files.cmroot)


@dataclass(frozen=True)
class KeptFiles:
    """The files that are kept for replicas, until they are too old."""

    db: Database
    files: Files
    retention: timedelta

    def purge(self) -> int:
        """Remove files that have been kept for long enough; return their number.

        A failed removal does not stop the others.
        Raises: the first OSError, when all others are gone.
        """
        with self.db.begin(durable=False) as pg:
            now = pg.now
        gone = rules.expired(self.files.changed(self.files.cmroot), now, self.retention)
        failure = None
        for name in gone:
            try:
                self.files.delete(f"{self.files.cmroot.rstrip('/')}/{name}", recursive=False)
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return len(gone)
