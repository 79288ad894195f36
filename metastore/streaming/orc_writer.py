"""Arrow's ORC writer with additions: NULL structs, fractions of times before 1970, the calendar of Hive's files.

Rule: no other code in Python writes ORC.

Arrow rounds a time's seconds towards 1970 and takes a negative fraction, which Java's readers refuse. Rule: from the
first such time on a part is written with seconds as whole numbers, and each stripe gets the fractions as a stream of
its own, so that it equals the output of Java's writer, except that it has no indexes of rows.
"""

import io
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import orc

from metastore.acid.protobuf import bytes_field, fields, number_field
from metastore.acid_tables.calendars import hybrid, leaves, mapped
from metastore.acid_tables.orc_rows import INDEXES, SECONDARY, STREAM, epoch, stream_message
from metastore.acid_tables.orc_tail import (
    INDEX_STRIDE,
    MAGIC,
    MAX_POSTSCRIPT,
    STATISTICS,
    STRIPE,
    STRIPE_DATA,
    STRIPE_FOOTER,
    STRIPE_INDEX,
    STRIPE_OFFSET,
    STRIPE_ROWS,
    TIMESTAMP,
    TYPE,
    Tail,
    numbers,
    stored,
    tail_bytes,
    tail_size,
    with_kind,
)
from metastore.streaming.nulls import pushed_down

_STRIPE_BYTES = 16 * 1024 * 1024
_KEPT = 8 * 1024 * 1024
"""The most that a footer may take: this many of the last bytes are remembered, since nothing can be read back."""

_SECOND = 1_000_000
_MILLISECOND = 1_000
_ZEROS_LEFT_OUT = 3
"""The number of zeros left out of nanoseconds that are whole microseconds."""

_RUN, _DIRECT_24_BITS = 512, 0b01_10111_0
_OF_NUMBERS, _OF_TIMES = 2, 9
"""Fields of a column's statistics."""


class OrcPart(NamedTuple):
    """A complete ORC file among the bytes that a writer wrote: its end, and where it begins."""

    end: bytes
    start: int


class OrcWriter:
    """A writer of rows as one part or several, each a complete ORC file, behind the present content of ``out``."""

    def __init__(self, out: BinaryIO, compression: str) -> None:
        self._sink = _Sink(out)
        self._compression = compression
        self._parts: list[OrcPart] = []
        self._part: _ArrowPart | _EarlyPart | None = None

    @property
    def size(self) -> int:
        """The number of bytes written."""
        return self._sink.size

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        arrays = [hybrid(pushed_down(column)) for column in rows.columns]
        is_begun = isinstance(self._part, _EarlyPart)
        if not is_begun and any(_is_early(times) for column in arrays for _, times in leaves(column)):
            self._end()
            self._part = _EarlyPart(self._sink, self._compression)
        if self._part is None:
            self._part = _ArrowPart(self._sink, self._compression)
        self._part.write(arrays, rows.schema.names)

    def close(self) -> list[OrcPart]:
        """End the last part. Returns all parts."""
        self._end()
        return self._parts

    def _end(self) -> None:
        if self._part is not None:
            self._part.close()
            end = self._sink.end(tail_size(self._sink.end(MAX_POSTSCRIPT)))
            self._parts.append(OrcPart(end, self._part.start))
            self._part = None


class _ArrowPart:
    """A part of Arrow's own writer."""

    def __init__(self, sink: "_Sink", compression: str) -> None:
        self.start = sink.size
        self._writer = orc.ORCWriter(pa.PythonFile(sink, mode="w"), compression=compression, stripe_size=_STRIPE_BYTES)

    def write(self, arrays: list[pa.Array], names: list[str]) -> None:
        self._writer.write(pa.table(arrays, names))

    def close(self) -> None:
        self._writer.close()


class _EarlyPart:
    """A part with times before 1970 that have a fraction. It is put together in memory."""

    def __init__(self, sink: "_Sink", compression: str) -> None:
        self.start = sink.size
        self._sink = sink
        self._buffer = io.BytesIO()
        self._fractions: dict[int, list[pa.Array]] = {}
        self._writer = orc.ORCWriter(
            pa.PythonFile(self._buffer, mode="w"), compression=compression, stripe_size=_STRIPE_BYTES
        )

    def write(self, arrays: list[pa.Array], names: list[str]) -> None:
        row = pa.StructArray.from_arrays(arrays, names)
        for column, times in leaves(row):
            if not pa.types.is_date(times.type):
                self._fractions.setdefault(column, []).append(times)
        self._writer.write(pa.table([mapped(array, array.type, _stored_seconds) for array in arrays], names))

    def close(self) -> None:
        self._writer.close()
        fractions = {column: pa.concat_arrays(times) for column, times in self._fractions.items()}
        self._sink.write(_with_fractions(self._buffer.getvalue(), fractions))


class _Sink(io.RawIOBase):
    """The sink of a part: a view of the file that hides the bytes before the part."""

    def __init__(self, out: BinaryIO) -> None:
        super().__init__()
        self._out = out
        self._last: deque[bytes] = deque()
        self._last_size = 0
        self.size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write to the file, and remember the end."""
        chunk = bytes(data)  # Bytes are not copied again.
        self._out.write(chunk)
        self.size += len(chunk)
        self._last.append(chunk)
        self._last_size += len(chunk)
        while self._last_size - len(self._last[0]) >= _KEPT:
            self._last_size -= len(self._last.popleft())
        return len(chunk)

    def end(self, size: int) -> bytes:
        """Return the last ``size`` bytes written, or as many as are remembered."""
        chunks: list[bytes] = []
        missing = size
        for chunk in reversed(self._last):
            chunks.append(chunk)
            missing -= len(chunk)
            if missing <= 0:
                break
        return b"".join(reversed(chunks))[-size:]


def _is_early(times: pa.Array) -> bool:
    """Return True if one of these hybrid times is before 1970 and not a whole second."""
    if pa.types.is_date(times.type):
        return False
    numbers_of = times.view(pa.int64())
    lowest = pc.min(numbers_of).as_py()
    if lowest is None or lowest >= 0:
        return False
    values = numbers_of.to_numpy(zero_copy_only=False)
    return bool(np.any((values < 0) & (values % _SECOND != 0)))


def _stored_seconds(values: pa.Array) -> pa.Array:
    """Convert times to the seconds that a file holds; dates stay as they are."""
    if pa.types.is_date(values.type):
        return values
    times = values.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    seconds, fraction = np.divmod(times, _SECOND)
    seconds += (seconds < 0) & (fraction >= _MILLISECOND)  # Java's writer rounds like this, and its reader reverses it.
    return pa.array(seconds - epoch("UTC"), mask=values.is_null().to_numpy(zero_copy_only=False))


def _with_fractions(part: bytes, times: dict[int, pa.Array]) -> bytes:
    """Turn columns of seconds of an ORC file into timestamps; ``times``: their values, without NULLs."""
    tail = Tail.parsed(part)
    counts = [_counts(stripe) for stripe in _messages(tail.stripe_statistics, 1)]
    if any(sum(of_stripe[column] for of_stripe in counts) != len(values) for column, values in times.items()):
        raise ValueError("the file does not hold as many times as were written")
    numbers_of = {column: values.view(pa.int64()).to_numpy(zero_copy_only=False) for column, values in times.items()}
    taken = dict.fromkeys(times, 0)
    result, stripes = bytearray(MAGIC), []
    for stripe, of_stripe in zip(tail.stripes(), counts, strict=True):
        at = stripe[STRIPE_OFFSET] + stripe.get(STRIPE_INDEX, 0)
        content = part[at : at + stripe[STRIPE_DATA]]
        footer = tail.expanded(part[at + len(content) : at + len(content) + stripe[STRIPE_FOOTER]])
        kept = [field.raw for field in fields(footer) if field.number != STREAM or not _is_index(field.value)]
        for column, values in numbers_of.items():
            chosen = values[taken[column] : taken[column] + of_stripe[column]]
            taken[column] += len(chosen)
            stream = stored(_encoded(chosen % _SECOND), tail.block)
            content += stream
            kept.append(bytes_field(STREAM, stream_message(SECONDARY, column, len(stream))))
        ending = stored(b"".join(kept), tail.block)
        sizes = {STRIPE_OFFSET: len(result), STRIPE_DATA: len(content), STRIPE_FOOTER: len(ending)}
        sizes |= {STRIPE_INDEX: 0, STRIPE_ROWS: stripe[STRIPE_ROWS]}
        stripes.append(bytes_field(STRIPE, b"".join(number_field(*pair) for pair in sizes.items())))
        result += content + ending
    statistics = b"".join(
        bytes_field(1, b"".join(bytes_field(1, one) for one in _without_bounds(_messages(stripe, 1), times)))
        for stripe in _messages(tail.stripe_statistics, 1)
    )
    return bytes(result) + tail_bytes(tail, _footer(tail.footer, times, stripes), statistics)


def _footer(footer: bytes, times: dict[int, pa.Array], stripes: list[bytes]) -> bytes:
    """Return the footer of a part whose columns ``times`` are timestamps, without indexes of rows."""
    types = [
        with_kind(described, TIMESTAMP) if column in times else described
        for column, described in enumerate(_messages(footer, TYPE))
    ]
    bounds = _without_bounds(_messages(footer, STATISTICS), times)
    changed = {STRIPE, TYPE, STATISTICS, INDEX_STRIDE}
    return b"".join(
        (
            *(field.raw for field in fields(footer) if field.number not in changed),
            *stripes,
            *(bytes_field(TYPE, described) for described in types),
            *(bytes_field(STATISTICS, one) for one in bounds),
            number_field(INDEX_STRIDE, 0),
        )
    )


def _without_bounds(statistics: list[bytes], times: dict[int, pa.Array]) -> Iterator[bytes]:
    """Yield the columns' statistics; for times, only the count of values without bounds."""
    for column, one in enumerate(statistics):
        if column not in times:
            yield one
        else:
            kept = b"".join(field.raw for field in fields(one) if field.number != _OF_NUMBERS)
            yield kept + bytes_field(_OF_TIMES, b"")  # Readers expect the message of the column's type.


def _counts(stripe: bytes) -> list[int]:
    """Count the non-NULL values of the columns of a stripe."""
    return [numbers(column).get(1, 0) for column in _messages(stripe, 1)]


def _messages(message: bytes, number: int) -> list[bytes]:
    return [field.value for field in fields(message) if field.number == number and isinstance(field.value, bytes)]


def _is_index(stream: Any) -> bool:
    return numbers(stream).get(1) in INDEXES


def _encoded(fractions: NDArray[np.int64]) -> bytes:
    """Encode microseconds of seconds as ORC's runs of numbers of 24 bits."""
    numbers_of = fractions << 3 | _ZEROS_LEFT_OUT - 1
    content = numbers_of.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    runs = []
    for at in range(0, len(content), _RUN):
        run = content[at : at + _RUN]
        runs.append(bytes([_DIRECT_24_BITS | len(run) - 1 >> 8, len(run) - 1 & 0xFF]) + run.tobytes())
    return b"".join(runs)
