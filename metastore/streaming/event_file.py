"""A ``bucket_N`` file of a delta while it is being written: by a transaction, or by several in turn.

Rule: what a transaction wrote becomes part of the file at its ``flush``, which ends with a complete footer on disk, and
never at an ``abandon``. A file that several transactions share has a side file (``bucket_N_flush_length``) from
before its first byte until it is closed, so readers know how much of it counts; a length is written after what it
counts is on disk. Sorted by key, as readers need it: write ids come in ascending order, row ids in order of arrival.
"""

import io
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.bucket import encode
from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS, INSERT_EVENT
from metastore.acid.names import bucket_file, side_file
from metastore.acid.orc_footer import MAX_TAIL, RowKey, acid_entries
from metastore.files import Files
from metastore.roots import local_path
from metastore.streaming.orc_segments import Segments, tail_size
from metastore.streaming.orc_writer import NestedOrcWriter

_STRIPE_BYTES = 16 * 1024 * 1024
_KEPT = 8 * 1024 * 1024
"""The most that a footer may take: so much of what was written last is remembered, since nothing can be read back."""

_LENGTH = 8


class _Sink(io.RawIOBase):
    """Where the ORC writer writes a part: the file, of which it does not see what is before."""

    def __init__(self, out: BinaryIO) -> None:
        super().__init__()
        self._out = out
        self._last: deque[bytes] = deque()
        self._last_size = 0
        self.size = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Pass on, and remember the end."""
        chunk = bytes(data)  # no copy of what is bytes already
        self._out.write(chunk)
        self.size += len(chunk)
        self._last.append(chunk)
        self._last_size += len(chunk)
        while self._last_size - len(self._last[0]) >= _KEPT:
            self._last_size -= len(self._last.popleft())
        return len(chunk)

    def end(self, size: int) -> bytes:
        """What was written last: that many bytes, or as many as are remembered."""
        chunks: list[bytes] = []
        missing = size
        for chunk in reversed(self._last):
            chunks.append(chunk)
            missing -= len(chunk)
            if missing <= 0:
                break
        return b"".join(reversed(chunks))[-size:]


class EventFile:
    """A file of insert events or of delete events; its subclasses know which. Not shared between threads."""

    operation: int

    def __init__(
        self,
        files: Files,
        directory: str,
        bucket: int,
        row_type: pa.StructType,
        *,
        compression: str,
        is_shared: bool = False,
        statement: int = 0,
    ) -> None:
        """``bucket``: N of ``bucket_N``; ``is_shared``: several transactions will write, and readers come meanwhile."""
        self.path = f"{directory}/{bucket_file(bucket)}"
        self.rows = 0
        self.busy = Lock()
        """For callers that do share it."""
        self._bucket = encode(bucket, statement)
        self._row_type = row_type
        self._compression = compression
        self._segments = Segments()
        self._stripe_ends: list[RowKey] = []
        self._side = self._create_side_file() if is_shared else None
        self._out = files.create(self.path)
        self._size = 0
        self._sink: _Sink | None = None
        self._writer: NestedOrcWriter | None = None
        self._ends_whole = False
        self._is_broken = False

    @property
    def is_dirty(self) -> bool:
        """Whether there is something to flush."""
        return self._writer is not None

    def flush(self) -> None:
        """Make what was written since the last flush part of the file, safe on disk."""
        if self._writer is None or self._sink is None:
            return
        with self._whole_or_broken():
            self._writer.close()
            counts = self._segments.add(self._sink.end(tail_size(self._sink.end(MAX_TAIL))), self._size)
            self._size += self._sink.size
            self._writer = self._sink = None
            end = 0
            for count in counts:
                end += count
                self._stripe_ends.append(self._key(end - 1))
            self.rows = self._segments.rows
            self._begin_segment()
            self._write_tail()

    def abandon(self) -> None:
        """Give up what was written since the last flush: it stays outside of what the footer lists."""
        if self._writer is None or self._sink is None:
            return
        with self._whole_or_broken():
            self._writer.close()
            self._size += self._sink.size
            self._writer = self._sink = None
            self._begin_segment()
            self._ends_whole = False

    def close(self) -> bool:
        """End the file; False when no transaction left anything in it, and it is to be removed.

        A file that could not be written to the end is left as it is: its side file says how much of it counts.
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
        """Let go of the file, which is of no use any more, without a word."""
        with suppress(OSError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._out.close()

    @property
    def is_broken(self) -> bool:
        """Whether an attempt to write failed, so that nothing more can be."""
        return self._is_broken

    @contextmanager
    def _whole_or_broken(self) -> Iterator[None]:
        """Nothing is written any more behind something that was written in part."""
        if self._is_broken:
            raise OSError(f"{self.path} could not be written before")
        self._is_broken = True
        yield
        self._is_broken = False

    def _begin_segment(self) -> None:
        """Forget the keys of what was flushed or given up."""

    def _key(self, position: int) -> RowKey:
        """The key of a row that was written since the last flush."""
        raise NotImplementedError

    def _append(
        self, write_ids: pa.Array, buckets: pa.Array, row_ids: pa.Array, current: pa.Array, rows: pa.StructArray
    ) -> None:
        operations = pa.repeat(pa.scalar(self.operation, pa.int32()), len(rows))
        events = pa.table([operations, write_ids, buckets, row_ids, current, rows], names=[*EVENT_COLUMNS])
        with self._whole_or_broken():
            if self._writer is None:
                self._sink = _Sink(self._out)
                self._ends_whole = False
                self._writer = NestedOrcWriter(
                    pa.PythonFile(self._sink, mode="w"), compression=self._compression, stripe_size=_STRIPE_BYTES
                )
            self._writer.write(events)

    def _write_tail(self) -> None:
        notes = acid_entries(self._stripe_ends, self._segments.rows, is_delete=self.operation == DELETE_EVENT)
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
        """Make the side file appear with its first length in it: an empty file would mean nothing."""
        path = local_path(side_file(self.path))
        if path is None:
            raise OSError(f"{self.path}: files that several transactions share need a file system that can append")
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(bytes(_LENGTH))
        hidden.rename(path)
        return path


class InsertFile(EventFile):
    """Insert events, numbered here: row ids begin at 0 for every write id."""

    operation = INSERT_EVENT
    _write_id = 0
    _next_row = 0

    def insert(self, write_id: int, rows: pa.StructArray) -> None:
        """Append rows of the transaction with this write id."""
        count = len(rows)
        ids = pa.repeat(pa.scalar(write_id, pa.int64()), count)
        numbers = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=self._next_row - 1)
        self._append(ids, pa.repeat(pa.scalar(self._bucket, pa.int32()), count), numbers, ids, rows)
        self._write_id = write_id
        self._next_row += count

    def _begin_segment(self) -> None:
        self._next_row = 0

    def _key(self, position: int) -> RowKey:
        return RowKey(self._write_id, self._bucket, position)


class DeleteFile(EventFile):
    """Delete events of rows by their ROW__IDs, in ascending order."""

    operation = DELETE_EVENT

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._starts: list[int] = []
        self._ids: list[Sequence[pa.Array]] = []
        self._count = 0

    def delete(self, write_id: int, ids: Sequence[pa.Array]) -> None:
        """Append delete events; ``ids``: write ids, bucket numbers and row ids of the rows, as they stand there."""
        count = len(ids[0])
        current = pa.repeat(pa.scalar(write_id, pa.int64()), count)
        write_ids, buckets, row_ids = ids
        self._append(write_ids, buckets, row_ids, current, pa.nulls(count, self._row_type))
        self._starts.append(self._count)
        self._ids.append(ids)
        self._count += count

    def _begin_segment(self) -> None:
        self._starts.clear()
        self._ids.clear()
        self._count = 0

    def _key(self, position: int) -> RowKey:
        at = bisect_right(self._starts, position) - 1
        return RowKey(*(column[position - self._starts[at]].as_py() for column in self._ids[at]))
