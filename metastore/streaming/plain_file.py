"""A file of an insert-only table while a transaction writes it: only the table's rows.

Rule: rows do not name their transaction, so a file belongs to a single transaction. It is complete, and safe on disk,
when its ``flush`` has returned; there is only a single flush.
"""

import os
from contextlib import suppress
from threading import Lock

import pyarrow as pa

from metastore.acid.names import original_file
from metastore.files import Files
from metastore.roots import local_path
from metastore.streaming.orc_segments import Segments
from metastore.streaming.orc_writer import OrcWriter


class PlainFile:
    """A file ``00000N_0``. It is not thread-safe."""

    def __init__(
        self,
        files: Files,
        directory: str,
        bucket: int,
        row_type: pa.StructType,
        *,
        compression: str,
        is_shared: bool = False,
    ) -> None:
        """Create the file; ``bucket``: N; ``is_shared`` must be False."""
        if is_shared:
            raise ValueError("rows of insert-only tables do not tell which transaction wrote them")
        self.path = f"{directory}/{original_file(bucket)}"
        self.rows = 0
        self.busy = Lock()
        self._schema = pa.schema(list(row_type))
        self._written = 0
        self._is_broken = False
        self._out = files.create(self.path)
        self._writer = OrcWriter(self._out, compression)

    @property
    def is_dirty(self) -> bool:
        """True if there are rows to flush; see ``DeltaFile``, here and below."""
        return self._written > self.rows

    @property
    def is_broken(self) -> bool:  # noqa: D102
        return self._is_broken

    def insert(self, write_id: int, rows: pa.StructArray) -> None:  # noqa: ARG002, D102 - rows do not tell whose they are
        self._is_broken = True
        self._writer.write(pa.RecordBatch.from_arrays(rows.flatten(), schema=self._schema))
        self._written += len(rows)
        self._is_broken = False

    def flush(self) -> None:  # noqa: D102
        if self._is_broken:
            raise OSError(f"{self.path} could not be written before")
        self._is_broken = True
        whole = Segments()
        for part in self._writer.close():
            whole.add(part.end, part.start)
        self._out.write(whole.tail(self._writer.size, {}))
        self._out.flush()
        if local_path(self.path) is not None:
            os.fsync(self._out.fileno())
        self._out.close()
        self.rows = self._written
        self._is_broken = False

    def abandon(self) -> None:  # noqa: D102
        if self.is_dirty:
            self._is_broken = True

    def close(self) -> bool:  # noqa: D102
        self.discard()
        return bool(self.rows)

    def discard(self) -> None:  # noqa: D102
        if not self.rows:
            with suppress(OSError, pa.ArrowException):
                self._writer.close()
            with suppress(OSError):
                self._out.close()
