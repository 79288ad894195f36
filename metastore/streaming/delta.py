"""Files of a batch: in each partition a delta directory, in it a file for each writer.

Rule: files are written where they stay. They carry write ids that are open, so no reader looks at them before the
commit; a process that dies leaves an aborted delta, which the Cleaner removes.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from threading import Lock
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from metastore.acid.names import VERSION_FILE, VERSION_TEXT, DeltaName, side_file
from metastore.files import Files
from metastore.streaming.table import StreamTable


class DeltaFile(Protocol):
    """A file that is being written: events, or the bare rows of an insert-only table."""

    path: str
    rows: int
    """Those that are part of it."""

    busy: Lock
    """For callers that share it."""

    @property
    def is_dirty(self) -> bool:
        """True if there are rows to flush."""

    @property
    def is_broken(self) -> bool:
        """True if a write failed, so that no other can follow."""

    def flush(self) -> None:
        """Make the rows since the last flush part of the file, safe on disk."""

    def abandon(self) -> None:
        """Drop the rows since the last flush."""

    def close(self) -> bool:
        """End the file; return False if it is empty and must be removed."""

    def discard(self) -> None:
        """Release the file silently; it is of no use any more."""


class RowFile(DeltaFile, Protocol):
    """A file that takes rows."""

    def insert(self, write_id: int, rows: pa.StructArray) -> None:
        """Append rows of the transaction with this write id."""


_File = TypeVar("_File", bound=DeltaFile)


class DeltaFiles(Generic[_File]):
    """All files of a batch of write ids. It is thread-safe."""

    def __init__(
        self,
        files: Files,
        table: StreamTable,
        low: int,
        high: int,
        kind: Callable[..., _File],
        *,
        compression: str,
        may_publish: Callable[[], None],
    ) -> None:
        """Prepare the files. ``may_publish``: called before a directory is made; raises if the transaction is over."""
        self._files = files
        self._may_publish = may_publish
        self._kind = kind
        self._row_type = table.row_type
        self._is_marked = not table.is_insert_only
        self._compression = compression
        self.is_shared = low != high
        """Whether several transactions write into them."""
        self._name = str(DeltaName(low, high, None if self.is_shared else 0))
        self._open: dict[tuple[str, int], _File] = {}
        self._directories: set[str] = set()
        self._lock = Lock()

    def file(self, location: str, writer: int) -> _File:
        """Return ``bucket_<writer>`` of the partition at ``location``."""
        return self._open.get((location, writer)) or self._create(location, writer)

    def flush(self, pool: Executor) -> None:
        """Make all written rows part of the files, safe on disk."""
        dirty = [file for file in self._open.values() if file.is_dirty]
        if len(dirty) == 1:
            dirty[0].flush()
            return
        for done in [pool.submit(file.flush) for file in dirty]:
            done.result()

    def abandon(self) -> bool:
        """Drop the rows since the last flush; return False if the batch cannot continue for that reason."""
        try:
            for file in self._open.values():
                file.abandon()
        except (OSError, pa.ArrowException):
            return False
        return not any(file.is_broken for file in self._open.values())

    def close(self) -> None:
        """End all files, and remove those without rows of any transaction."""
        empty = [file for file in self._open.values() if not file.close()]
        for file in empty:
            self._files.delete(file.path)
            self._files.delete(side_file(file.path))
        kept = {location for (location, _), file in self._open.items() if file.rows}
        for location in {location for location, _ in self._open} - kept:
            self._files.delete(f"{location}/{self._name}")
        self._open.clear()

    def remove(self) -> None:
        """Remove all files: their transaction was aborted."""
        for file in self._open.values():
            file.discard()
        for directory in self._directories:
            with suppress(OSError):
                self._files.delete(directory)
        self._open.clear()

    def _create(self, location: str, writer: int) -> _File:
        with self._lock:
            known = self._open.get((location, writer))
            if known is not None:
                return known
            directory = f"{location}/{self._name}"
            if directory not in self._directories:
                self._may_publish()
                if self._files.exists(directory):
                    raise FileExistsError(f"{directory} exists already")
                self._directories.add(directory)
                if self._is_marked:
                    self._files.write(f"{directory}/{VERSION_FILE}", VERSION_TEXT)
            file = self._kind(
                self._files, directory, writer, self._row_type, compression=self._compression, is_shared=self.is_shared
            )
            self._open[location, writer] = file
            return file
