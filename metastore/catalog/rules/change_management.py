"""Rules of change management: the files that a replica of a database may still need, and their names in ``cmroot``.

Rule: Hive's ReplChangeManager. A database is a source of replication while its ``repl.source.for`` is not empty. No
file of its managed tables is removed: the file moves to ``cmroot``, one flat directory, as ``<its name>_<its
checksum>``. A replica that learnt of the file by an event and comes too late looks there.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from metastore.catalog.model import TableType

SOURCE_OF_REPLICATION = "repl.source.for"
_LONGEST = 255
"""``dfs.namenode.fs-limits.max-component-length``; Hive cuts what is longer to one character less."""


def is_source(database_parameters: Mapping[str, str]) -> bool:
    """Return True if a database is a source of replication."""
    return bool(database_parameters.get(SOURCE_OF_REPLICATION))


def is_needed(database_parameters: Mapping[str, str], kind: str) -> bool:
    """Return True if a replica may need the files of a table of this type.

    A replica has no claim to the files of external tables.
    """
    return is_source(database_parameters) and kind != TableType.EXTERNAL


def name_in_cmroot(name: str, checksum: str) -> str:
    """Return the name of a file in ``cmroot``."""
    whole = f"{name}_{checksum}"
    return whole if len(whole) <= _LONGEST else whole[: _LONGEST - 1]


def replicated(uris: Iterable[str], root: str) -> list[str]:
    """Return the files that are part of a table.

    These are ``root`` itself, and paths below it without a name that begins with a dot. Names that begin with ``_`` are
    included, because Hive needs some of them.
    """
    above = root.rstrip("/").rpartition("/")[0]
    return [uri for uri in uris if not any(part.startswith(".") for part in uri.removeprefix(above).split("/"))]


def expired(files: Sequence[tuple[str, datetime]], now: datetime, retention: timedelta) -> list[str]:
    """Return the files that are older than the retention."""
    return [name for name, came_at in files if now - came_at > retention]
