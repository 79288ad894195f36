"""Tails of ORC files: rows, columns, the writer's notes. The driver reads them itself, without a Spark job."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pyarrow import ArrowException, orc

from metastore.acid.events import INSERT_EVENT
from metastore.acid.orc_footer import STATS
from metastore.files import Files

READERS = 8
"""Files that are read at the same time."""
WHOLE = 10
"""Times the time-out of a question: a column of a whole file is read."""

_SPARK_VERSION = "org.apache.spark.version"
_NAMELESS = re.compile("_col[0-9]+")


@dataclass(frozen=True)
class OrcTail:
    """The tail of a file; ``fields``: top-level columns, ``notes``: user metadata."""

    path: str
    rows: int
    fields: tuple[str, ...]
    notes: dict[str, bytes]
    stripes: int = 0

    @property
    def is_by_spark(self) -> bool:
        """True if Spark wrote the file."""
        return _SPARK_VERSION in self.notes

    @property
    def spark_version(self) -> str:
        """The version of the Spark that wrote the file; "" if none did."""
        return self.notes.get(_SPARK_VERSION, b"").decode("utf-8", "replace")


class EventCounts(NamedTuple):
    """The numbers of events of each kind in an ACID file, as its writer noted them."""

    inserts: int
    updates: int
    deletes: int


def are_nameless(names: Sequence[str]) -> bool:
    """Return True if a file does not name its columns (``_col0``), as old Hives write them.

    Such columns are known by their positions.
    """
    return bool(names) and all(_NAMELESS.fullmatch(name) for name in names)


def orc_tail(files: Files, path: str) -> OrcTail:
    """Read the tail of a file. Raises: OSError, with the path, when it is not an ORC file."""

    def tail() -> OrcTail:
        with files.open(path) as source, damage_named(path):
            opened = orc.ORCFile(source)
            notes = {key.decode("utf-8", "replace"): value for key, value in (opened.metadata or {}).items()}
            return OrcTail(path, int(opened.nrows), tuple(opened.schema.names), notes, int(opened.nstripes))

    return files.ask(path, tail)


def opened_orc(path: str, source: Any) -> orc.ORCFile:
    """Open ``source``, a stream or a buffer, as an ORC file. Raises: OSError, with the path, if it is none."""
    with damage_named(path):
        return orc.ORCFile(source)


@contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Turn each error of the reader of a damaged ORC file into OSError, with the path."""
    try:
        yield
    except (ArrowException, UnicodeDecodeError, OSError) as error:  # A column's name may be damaged like any byte.
        raise OSError(f"{path} cannot be read as an ORC file: {error}") from error


def orc_tails(files: Files, paths: Iterable[str]) -> list[OrcTail]:
    """Read the tails of several files at a time, in the order of ``paths``. Raises: as ``orc_tail``."""
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(partial(orc_tail, files), paths))


def event_counts(tail: OrcTail) -> EventCounts | None:
    """Return the numbers of events that the writer noted; None if it noted none."""
    try:
        return EventCounts(*map(int, tail.notes[STATS].split(b",")))
    except (KeyError, ValueError, TypeError):
        return None


def has_old_events(files: Files, tail: OrcTail) -> bool:
    """Return True if an insert delta's file holds update or delete events, as Hive wrote them before version 2 of ACID.

    Raises: OSError, with the path, if it cannot be read.
    """
    if (counts := event_counts(tail)) is not None:
        return counts.updates + counts.deletes > 0

    def operations() -> Any:
        with files.open(tail.path) as source, damage_named(tail.path):
            return orc.ORCFile(source).read(columns=["operation"])["operation"]

    found = files.ask(tail.path, operations, WHOLE)
    return any(operation != INSERT_EVENT for operation in found.unique().to_pylist())
