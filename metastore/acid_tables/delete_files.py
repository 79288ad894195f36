"""The files of a snapshot's delete deltas: how many events each holds, then the events, with one opening for both.

Rule: counted before anything is decoded, and never guessed from sizes, since five million events fit in 34 kB. A small
file is taken into memory whole; one that is not is opened once to count, and again where its events are wanted.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
from pyarrow import orc

from metastore.acid_tables.footers import READERS, damage_named, opened_orc, orc_tail
from metastore.acid_tables.sources import DataFile
from metastore.files import Files
from metastore.roots import local_path

BROADCAST_LIMIT = 1_000_000
"""Rows up to which a join broadcasts them one by one, delete events above all."""

SMALL, ROOM = 1 << 20, 1 << 26
"""Up to which size a file is taken into memory, and all of them together."""

_MANY_FILES = 20_000
_MANY_REMOTE_FILES = 500


@dataclass(frozen=True)
class _DeleteFile:
    path: str
    events: int
    whole: bytes | None
    """Its bytes rather than what reads them, which takes more space than they do."""


@dataclass(frozen=True)
class DeleteFiles:
    """Delete files by their paths; None: so many that asking them would take long."""

    found: dict[str, _DeleteFile] | None

    @classmethod
    def of(cls, files: Files, wanted: Sequence[DataFile]) -> "DeleteFiles":
        """Count the events of all. Raises: OSError for one that cannot be read, with its path."""
        is_local = all(local_path(one.path) is not None for one in wanted)
        if len(wanted) > (_MANY_FILES if is_local else _MANY_REMOTE_FILES):
            return cls(None)
        so_far = accumulate(min(one.size, SMALL) for one in wanted)
        tasks = [
            (files, one.path, one.size <= SMALL and total <= ROOM) for one, total in zip(wanted, so_far, strict=True)
        ]
        if is_local:  # a disk answers sooner than threads start
            return cls({task[1]: _counted(*task) for task in tasks})
        with ThreadPoolExecutor(READERS) as pool:
            return cls({one.path: one for one in pool.map(lambda task: _counted(*task), tasks)})

    def events(self, wanted: Iterable[DataFile]) -> int | None:
        """How many delete events these files hold; None: not counted."""
        if self.found is None:
            return None
        return sum(self.found[one.path].events for one in wanted)

    def read(self, files: Files, path: str, columns: Sequence[str]) -> pa.Table:
        """Columns of a file that was counted. Raises: OSError when it cannot be read, with its path."""
        file = (self.found or {})[path]
        with damage_named(path):
            if file.whole is not None:
                return orc.ORCFile(pa.BufferReader(file.whole)).read(columns=columns)
            with files.open(path) as source:
                return orc.ORCFile(source).read(columns=columns)


def _counted(files: Files, path: str, is_small: bool) -> _DeleteFile:  # noqa: FBT001 - a field of a task
    if not is_small:
        return _DeleteFile(path, orc_tail(files, path).rows, None)
    whole = files.read(path)
    return _DeleteFile(path, int(opened_orc(path, pa.BufferReader(whole)).nrows), whole)
