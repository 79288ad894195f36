"""The place where all data of tables is removed: what a replica may still need goes to ``cmroot`` instead.

Rule: a file is in ``cmroot`` before it leaves its table, whole and under the name that a replica looks for. Whatever
fails leaves it where it was, and is repeated by who removes: nothing is removed that could not be kept. ``kept`` is
``needed``'s answer, from the transaction that decides about the removal (ADR 0086).
"""

from dataclasses import dataclass
from datetime import timedelta

from metastore.catalog.model import Table
from metastore.catalog.rules import change_management as rules
from metastore.catalog.store import databases
from metastore.db.engine import Database, PgTx
from metastore.files import Files
from metastore.roots import Roots
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)


def needed(pg: PgTx, files: Files, table: Table) -> bool:
    """Return True if a table's files are to be kept when they go. Asks nothing where change management is off."""
    if not files.cmroot:
        return False
    database = databases.select_database(pg, table.name.database)
    return database is not None and rules.is_needed(database.parameters, table.type)


def remove(files: Files, location: str, *, kept: bool) -> None:
    """Remove a file or directory; absent is fine. Raises: OSError."""
    recycle(files, location, kept=kept)
    files.delete(location)


def empty(files: Files, location: str, *, kept: bool) -> None:
    """Remove everything in a directory. Raises: OSError."""
    recycle(files, location, kept=kept)
    files.delete_children(location)


def recycle(files: Files, location: str, *, kept: bool) -> None:
    """What comes before each removal: files that are to be ``kept`` move to ``cmroot``. Raises: OSError."""
    if files.cmroot and (Roots((location,)).covers(files.cmroot) or Roots((files.cmroot,)).covers(location)):
        raise OSError(f"{location} is not removed: {files.cmroot} keeps there what replicas may still need")
    if kept:
        keep(files, location, move=True)


def keep(files: Files, location: str, *, move: bool = False) -> None:
    """Bring a table's files to ``cmroot``, or copies of them; nothing where change management is off. Raises: OSError.

    For a directory that gets another name: events tell of its files by the old one.
    """
    if not files.cmroot:
        return
    replicated = rules.replicated(files.files_of(location), location)
    for uri in replicated:
        name = rules.name_in_cmroot(uri.rpartition("/")[2], files.checksum(uri))
        files.put_over(uri, f"{files.cmroot.rstrip('/')}/{name}", move=move)
    _log.info("files_kept_for_replicas", location=location, files=len(replicated), cmroot=files.cmroot, moved=move)


@dataclass(frozen=True)
class KeptFiles:
    """The files that are kept for replicas, until they are too old."""

    db: Database
    files: Files
    retention: timedelta

    def purge(self) -> int:
        """Remove what has been kept for long enough; how many files. What cannot be removed holds up nothing else.

        Raises: OSError, the first, when all others are gone.
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
