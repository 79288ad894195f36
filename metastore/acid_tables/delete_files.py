"""The files of a snapshot's delete deltas: the number of events in each, then the events.

Rule: events are counted before any is decoded, and never guessed from sizes: five million events fit in 34 kB. A small
file is read into memory whole, so that it is opened once for both. A large file is opened to count, and again when its
events are wanted.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import pyarrow as pa
from pyarrow import orc

from metastore.acid_tables.footers import READERS, WHOLE, damage_named, opened_orc, orc_tail
from metastore.acid_tables.sources import DataFile
from metastore.files import Files
from metastore.roots import local_path

SMALL, ROOM = 1 << 20, 1 << 26
"""Bytes: a file up to this size is kept in memory, and all such files together up to the second."""

_AT_ONCE = 50
_MANY_FILES = 20_000
_MANY_REMOTE_FILES = 500


@dataclass(frozen=True)
class _DeleteFile:
    path: str
    events: int
    whole: bytes | None
    """The file's bytes. (An open ORC reader would take more space than they do.)"""


@dataclass(frozen=True)
class DeleteFiles:
    """The delete files by their paths; None: there are so many that opening each would take long."""

    by_path: dict[str, _DeleteFile] | None

    @classmethod
    def of(cls, files: Files, wanted: Sequence[DataFile]) -> "DeleteFiles":
        """Count the events of all files. Raises: OSError, with the path, for a file that cannot be read."""
        is_local = all(local_path(file.path) is not None for file in wanted)
        if len(wanted) > (_MANY_FILES if is_local else _MANY_REMOTE_FILES):
            return cls(None)
        so_far = accumulate(min(file.size, SMALL) for file in wanted)
        tasks = [
            (files, file.path, file.size <= SMALL and total <= ROOM) for file, total in zip(wanted, so_far, strict=True)
        ]
        if is_local:  # A local disk answers sooner than threads start.
            counted: list[_DeleteFile] = []
            for begin in range(0, len(tasks), _AT_ONCE):
                some = tasks[begin : begin + _AT_ONCE]
                counted += files.ask(some[0][1], partial(_all_counted, some))
            return cls({file.path: file for file in counted})
        with ThreadPoolExecutor(READERS) as pool:
            return cls({file.path: file for file in pool.map(lambda task: _counted(*task), tasks)})

    def events(self, wanted: Iterable[DataFile]) -> int | None:
        """Count the delete events in these files; None: not counted."""
        if self.by_path is None:
            return None
        return sum(self.by_path[file.path].events for file in wanted)

    def read(self, files: Files, path: str, columns: Sequence[str]) -> pa.Table:
        """Return columns of a counted file, a row per event. Raises: OSError, with the path, if it cannot be read."""
        file = (self.by_path or {})[path]
        if file.whole is not None:
            with damage_named(path):
                return orc.ORCFile(pa.BufferReader(file.whole)).read(columns=columns)

        def events() -> pa.Table:
            with files.open(path) as source, damage_named(path):
                return orc.ORCFile(source).read(columns=columns)

        return files.ask(path, events, WHOLE)


def _all_counted(tasks: Sequence[tuple[Files, str, bool]]) -> list[_DeleteFile]:
    return [_counted(*task) for task in tasks]


def _counted(files: Files, path: str, is_small: bool) -> _DeleteFile:  # noqa: FBT001 - a field of a task
    if not is_small:
        return _DeleteFile(path, orc_tail(files, path).rows, None)
    whole = files.read(path)
    return _DeleteFile(path, int(opened_orc(path, pa.BufferReader(whole)).nrows), whole)
