"""What the tails of ORC files say: rows, columns, their writer's notes. Read in the driver, without a Spark job."""

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import SEEK_END
from typing import NamedTuple

from pyarrow import ArrowInvalid, orc

from metastore.acid.events import INSERT_EVENT
from metastore.acid.orc_footer import MAX_TAIL, STATS
from metastore.files import Files

_READERS = 8
_NOTED = re.compile(STATS.encode() + rb"\x12.0,0,(\d+)\x2a", re.DOTALL)
_SPARK_VERSION = "org.apache.spark.version"


@dataclass(frozen=True)
class OrcTail:
    """Of one file."""

    path: str
    rows: int
    fields: tuple[str, ...]
    notes: dict[str, bytes]

    @property
    def is_by_spark(self) -> bool:
        """Whether Spark wrote the file."""
        return _SPARK_VERSION in self.notes


class EventCounts(NamedTuple):
    """How many events of each kind an ACID file holds, as its writer noted it."""

    inserts: int
    updates: int
    deletes: int


def orc_tail(files: Files, path: str) -> OrcTail:
    """Look at one file. Raises: OSError when it is not an ORC file, with its path."""
    with files.open(path) as source:
        try:
            opened = orc.ORCFile(source)
            notes = {key.decode(): value for key, value in (opened.metadata or {}).items()}
            return OrcTail(path, int(opened.nrows), tuple(opened.schema.names), notes)
        except (ArrowInvalid, OSError) as error:
            raise OSError(f"{path} cannot be read as an ORC file: {error}") from error


def orc_tails(files: Files, paths: Iterable[str]) -> list[OrcTail]:
    """Look at several files at a time."""
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(partial(orc_tail, files), paths))


def delete_counts(files: Files, paths: Sequence[str]) -> list[int]:
    """How many delete events each of the files of delete deltas holds.

    The streaming connection notes it in plain text at the very end of the file, so a few bytes tell there.
    """
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(partial(_delete_count, files), paths))


def _delete_count(files: Files, path: str) -> int:
    with files.open(path) as source:
        end = source.seek(0, SEEK_END)
        source.seek(max(0, end - MAX_TAIL))
        noted = _NOTED.search(source.read())
    return int(noted[1]) if noted else orc_tail(files, path).rows


def event_counts(tail: OrcTail) -> EventCounts | None:
    """What the writer noted; None where it noted nothing."""
    try:
        return EventCounts(*map(int, tail.notes[STATS].split(b",")))
    except (KeyError, ValueError, TypeError):
        return None


def has_old_events(files: Files, tail: OrcTail) -> bool:
    """Whether an insert delta's file holds update or delete events, as Hive wrote them before version 2 of ACID."""
    if (counts := event_counts(tail)) is not None:
        return counts.updates + counts.deletes > 0
    with files.open(tail.path) as source:
        operations = orc.ORCFile(source).read(columns=["operation"])["operation"]
    return any(one != INSERT_EVENT for one in operations.unique().to_pylist())
