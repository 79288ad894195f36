"""A ``bucket_N`` file of a delta in progress: written by one transaction, or by several in turn.

Rule: the rows of a transaction become part of the file at its ``flush``, which ends with a complete footer on disk, and
never at an ``abandon``. A file that several transactions share has a side file (``bucket_N_flush_length``) from before
its first byte until it is closed, so readers know how much of it counts; a length is written after the counted bytes
are on disk. Sorted by key, as readers need it: write ids come in ascending order, row ids in order of arrival.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.bucket import encode
from metastore.acid.events import EVENT_COLUMNS, INSERT_EVENT
from metastore.acid.names import bucket_file, side_file
from metastore.acid.orc_footer import RowKey, acid_entries
from metastore.files import Files
from metastore.roots import local_path
from metastore.streaming.orc_segments import Segments
from metastore.streaming.orc_writer import OrcWriter

_LENGTH = 8


class InsertFile:
    """A file of insert events, numbered here: row ids begin at 0 for every write id. It is not thread-safe."""

    def __init__(
        self,
        files: Files,
        directory: str,
        bucket: int,
        row_type: pa.StructType,  # noqa: ARG002 - of DeltaFile's kinds
        *,
        compression: str,
        is_shared: bool = False,
    ) -> None:
        """Create the file.

        ``bucket``: N of ``bucket_N``; ``is_shared``: several transactions write, and readers come meanwhile.
        """
        self.path = f"{directory}/{bucket_file(bucket)}"
        self.rows = 0
        self.busy = Lock()
        """A lock for callers that share the file."""
        self._bucket = encode(bucket)
        self._compression = compression
        self._segments = Segments()
        self._stripe_ends: list[RowKey] = []
        self._side = self._create_side_file() if is_shared else None
        self._out = files.create(self.path)
        self._size = 0
        self._writer: OrcWriter | None = None
        self._ends_whole = False
        self._is_broken = False
        self._write_id = self._next_row = 0

    def insert(self, write_id: int, rows: pa.StructArray) -> None:
        """Append rows of the transaction with this write id."""
        count = len(rows)
        operations, buckets = (pa.repeat(pa.scalar(value, pa.int32()), count) for value in (INSERT_EVENT, self._bucket))
        ids = pa.repeat(pa.scalar(write_id, pa.int64()), count)
        numbers = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=self._next_row - 1)
        with self._whole_or_broken():
            if self._writer is None:
                self._ends_whole = False
                self._writer = OrcWriter(self._out, self._compression)
            columns = [operations, ids, buckets, numbers, ids, rows]
            self._writer.write(pa.RecordBatch.from_arrays(columns, names=[*EVENT_COLUMNS]))
        self._write_id = write_id
        self._next_row += count

    @property
    def is_dirty(self) -> bool:
        """True if there are rows to flush."""
        return self._writer is not None

    def flush(self) -> None:
        """Make the rows since the last flush part of the file, safe on disk."""
        if self._writer is None:
            return
        with self._whole_or_broken():
            parts = self._writer.close()
            counts = [count for part in parts for count in self._segments.add(part.end, self._size + part.start)]
            self._size += self._writer.size
            self._writer = None
            end = 0
            for count in counts:
                end += count
                self._stripe_ends.append(RowKey(self._write_id, self._bucket, end - 1))
            self.rows = self._segments.rows
            self._next_row = 0
            self._write_tail()

    def abandon(self) -> None:
        """Drop the rows since the last flush: the footer does not list them."""
        if self._writer is None:
            return
        with self._whole_or_broken():
            self._writer.close()
            self._size += self._writer.size
            self._writer = None
            self._next_row = 0
            self._ends_whole = False

    def close(self) -> bool:
        """End the file; return False if no transaction left rows in it, and it must be removed.

        An incomplete file is left as it is: its side file says how much of it counts.
        """
        if self._is_broken:
            self.discard()
            return True
        self.abandon()
        if self._segments.rows and not self._ends_whole:
            self._write_tail()
        self._out.close()
        if self._side is not None and self._segments.rows:
            self._side.unlink()
        return bool(self._segments.rows)

    def discard(self) -> None:
        """Release the file silently; it is of no use any more."""
        with suppress(OSError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._out.close()

    @property
    def is_broken(self) -> bool:
        """True if a write failed, so that no other can follow."""
        return self._is_broken

    @contextmanager
    def _whole_or_broken(self) -> Iterator[None]:
        """Mark the file as broken if the block fails, so that no bytes follow an incomplete write."""
        if self._is_broken:
            raise OSError(f"{self.path} could not be written before")
        self._is_broken = True
        yield
        self._is_broken = False

    def _write_tail(self) -> None:
        notes = acid_entries(self._stripe_ends, self._segments.rows, is_delete=False)
        self._size += self._out.write(self._segments.tail(self._size, notes))
        self._out.flush()
        self._ends_whole = True
        if local_path(self.path) is not None:
            os.fsync(self._out.fileno())
        if self._side is not None:
            with self._side.open("ab", buffering=0) as lengths:
                lengths.write(self._size.to_bytes(_LENGTH, "big"))
                os.fsync(lengths.fileno())

    def _create_side_file(self) -> Path:
        """Create the side file with its first length already in it: an empty side file has no meaning."""
        path = local_path(side_file(self.path))
        if path is None:
            raise OSError(f"{self.path}: files that several transactions share need a file system that can append")
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(bytes(_LENGTH))
        hidden.rename(path)
        return path
