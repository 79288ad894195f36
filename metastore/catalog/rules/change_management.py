"""Which files a replica of a database may still need, and how they are called once their table has no use for them.

Rule: Hive's ReplChangeManager. A database is a source of replication while its ``repl.source.for`` is not empty. Of its
managed tables no file is removed: it goes to ``cmroot``, one flat directory, as ``<its name>_<its checksum>``, which is
where a replica looks that learnt of the file by an event and comes too late.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from metastore.catalog.model import TableType

SOURCE_OF_REPLICATION = "repl.source.for"
_LONGEST = 255
"""``dfs.namenode.fs-limits.max-component-length``; Hive cuts what is longer to one character less."""


def is_source(database_parameters: Mapping[str, str]) -> bool:
    """Return True if a database is replicated from here."""
    return bool(database_parameters.get(SOURCE_OF_REPLICATION))


def is_needed(database_parameters: Mapping[str, str], kind: str) -> bool:
    """Whether a replica may need the files of a table of this type: those of external tables it has no claim to."""
    return is_source(database_parameters) and kind != TableType.EXTERNAL


def name_in_cmroot(name: str, checksum: str) -> str:
    """Return what a file is called there."""
    whole = f"{name}_{checksum}"
    return whole if len(whole) <= _LONGEST else whole[: _LONGEST - 1]


def replicated(uris: Iterable[str], root: str) -> list[str]:
    """Return those of the files that are part of a table: below ``root``, and it included, nothing hidden by a dot.

    Names that begin with ``_`` are: Hive needs some of them.
    """
    above = root.rstrip("/").rpartition("/")[0]
    return [uri for uri in uris if not any(part.startswith(".") for part in uri.removeprefix(above).split("/"))]


def expired(files: Sequence[tuple[str, datetime]], now: datetime, retention: timedelta) -> list[str]:
    """Return the files that came longer ago than they are kept."""
    return [name for name, came_at in files if now - came_at > retention]
