"""Rows of an ORC file's stripes as Arrow's batches, with their dates and times as they are shown.

Arrow's own reader holds times in nanoseconds, which reach from 1677 to 2262, and knows one calendar. Rule: a time is
read to the microsecond from year 1 to 9999, and a date or time keeps its name whichever calendar the file is in. Beyond
the range of nanoseconds, a stripe is read twice from memory: its seconds, as the whole numbers that a file holds, and
its fractions, with all seconds set to zero.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from metastore.acid.protobuf import bytes_field, fields, number_field
from metastore.acid_tables.calendars import has_julian, has_times, in_microseconds, leaves, mapped, proleptic
from metastore.acid_tables.orc_tail import (
    LONG,
    MAGIC,
    ROWS,
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
    with_kind,
)

STREAM, DATA, SECONDARY = 1, 1, 5
"""A stream's field in a stripe's footer, and two kinds of streams."""

_STREAM_KIND, _STREAM_COLUMN, _STREAM_LENGTH = 1, 2, 3
INDEXES = (6, 7, 8)
"""Kinds of streams that are indexes of rows."""

_ENCODING, _ZONE, _KIND = 2, 3, 1
_ZEROS = {0: (130, bytes([127, 0, 0])), 2: (512, bytes([0xC1, 0xFF, 0, 0]))}
"""The longest run of zeros of each encoding, and its bytes."""

_MICROSECONDS, _NANOSECONDS = 1_000_000, 1_000_000_000
_MILLISECOND = 1_000_000
"""A millisecond in nanoseconds."""


class OrcRows:
    """An ORC file that is read by stripes. ``source``: an open file, with its position."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._file = orc.ORCFile(source)
        self.schema: pa.Schema = self._file.schema
        self.writer: str = self._file.writer
        self.nstripes: int = self._file.nstripes

    def read_stripe(self, at: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return a stripe's rows; ``columns``: their names, with dots for fields of structs; None: all."""
        try:
            batch = self._file.read_stripe(at, columns)
        except pa.ArrowInvalid:
            if not any(has_times(field.type) for field in self.schema):
                raise
            batch = self._far(at, columns)
        if not any(has_times(field.type) for field in batch.schema):
            return batch
        shown = [mapped(column, column.type, self._as_shown) for column in batch.columns]
        return pa.RecordBatch.from_arrays(shown, batch.schema.names)

    def _as_shown(self, values: pa.Array) -> pa.Array:
        """Convert dates or times to the values that Spark shows; only old dates need the calendar in the footer."""
        values = values if pa.types.is_date(values.type) else in_microseconds(values)
        return proleptic(values) if has_julian(values) and not self._tail.is_proleptic else values

    @cached_property
    def _tail(self) -> Tail:
        return Tail.of(self._source)

    def has_negative_fraction(self, column: str) -> bool:
        """Return True if times in a column have fractions below 0, as Arrow's own writer stores those before 1970."""
        stripes = (_Stripe.read(self._source, self._tail, at) for at in range(self.nstripes))
        found = (values for stripe in stripes for values in stripe.halves([column])[1].columns)
        return any(_has_negative(times) for values in found for _, times in leaves(values))

    def _far(self, at: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        """Read a stripe with times beyond the range of nanoseconds."""
        stripe = _Stripe.read(self._source, self._tail, at)
        seconds, fractions = stripe.halves(columns)
        pairs = zip(seconds.columns, fractions.columns, strict=True)
        return pa.RecordBatch.from_arrays([_joined(*pair, stripe.zone) for pair in pairs], seconds.schema.names)


class _Stripe(NamedTuple):
    """A stripe of a file, in memory."""

    tail: Tail
    described: dict[int, int]
    content: bytes

    @classmethod
    def read(cls, source: Any, tail: Tail, at: int) -> "_Stripe":
        described = tail.stripes()[at]
        source.seek(described[STRIPE_OFFSET])
        size = sum(described.get(part, 0) for part in (STRIPE_INDEX, STRIPE_DATA, STRIPE_FOOTER))
        return cls(tail, described, source.read(size))

    @property
    def zone(self) -> str:
        """The time zone of the writer, in which a file's seconds count."""
        named = [field.content for field in fields(self._footer()) if field.number == _ZONE]
        return named[0].decode() if named else "UTC"

    def halves(self, columns: Sequence[str] | None) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the rows twice: with the seconds of their times, as whole numbers, and with the fractions alone."""
        seconds = orc.ORCFile(pa.BufferReader(self.with_seconds_as_numbers())).read_stripe(0, columns)
        zero_file = self.with_zero_seconds(max(map(_values, seconds.columns), default=0))
        return seconds, orc.ORCFile(pa.BufferReader(zero_file)).read_stripe(0, columns)

    def with_seconds_as_numbers(self) -> bytes:
        """Return a file of this stripe in which times are the whole numbers of their seconds."""
        footer = b"".join(
            bytes_field(TYPE, with_kind(field.content, LONG))
            if field.number == TYPE and numbers(field.content).get(1) == TIMESTAMP
            else field.raw
            for field in fields(self.tail.footer)
        )
        return self._alone(self.content, footer, self.described)

    def with_zero_seconds(self, count: int) -> bytes:
        """Return a file of this stripe with times as fractions of a second; ``count``: the most values of a column."""
        footer = list(fields(self._footer()))
        encodings = [numbers(field.content).get(_KIND, 0) for field in footer if field.number == _ENCODING]
        data, kept, at = [], [], 0
        for field in footer:
            if field.number != STREAM:
                kept.append(field.raw)
                continue
            stream = numbers(field.content)
            kind, column, length = (stream.get(part, 0) for part in (_STREAM_KIND, _STREAM_COLUMN, _STREAM_LENGTH))
            content = self.content[at : at + length]
            at += length
            if kind in INDEXES:
                continue  # An index has positions in the original stripe.
            if kind == DATA and self.tail.kinds()[column] == TIMESTAMP:
                size, run = _ZEROS[encodings[column]]
                content = stored(run * (count // size + 1), self.tail.block)
            data.append(content)
            kept.append(bytes_field(STREAM, stream_message(kind, column, len(content))))
        new_footer, streams = stored(b"".join(kept), self.tail.block), b"".join(data)
        sizes = {STRIPE_DATA: len(streams), STRIPE_FOOTER: len(new_footer), STRIPE_ROWS: self.described[STRIPE_ROWS]}
        return self._alone(streams + new_footer, self.tail.footer, sizes)

    def _footer(self) -> bytes:
        return self.tail.expanded(self.content[-self.described[STRIPE_FOOTER] :])

    def _alone(self, content: bytes, footer: bytes, described: dict[int, int]) -> bytes:
        kept = (field.raw for field in fields(footer) if field.number not in {STRIPE, ROWS, STATISTICS})
        stripe = b"".join(number_field(*pair) for pair in {**described, STRIPE_OFFSET: len(MAGIC)}.items())
        rows = number_field(ROWS, described[STRIPE_ROWS])
        return MAGIC + content + tail_bytes(self.tail, b"".join((*kept, bytes_field(STRIPE, stripe), rows)), b"")


def stream_message(kind: int, column: int, length: int) -> bytes:
    """Encode the description of a stream in a stripe's footer."""
    pairs = zip((_STREAM_KIND, _STREAM_COLUMN, _STREAM_LENGTH), (kind, column, length), strict=True)
    return b"".join(number_field(*pair) for pair in pairs)


def epoch(zone: str) -> int:
    """Return the second since 1970 from which a file's seconds count: the beginning of 2015 in its writer's zone."""
    return int(datetime(2015, 1, 1, tzinfo=ZoneInfo(zone)).timestamp())


def _values(array: pa.Array) -> int:
    """Return the number of values in an array, or in its largest child."""
    if pa.types.is_struct(array.type):
        return max([len(array), *map(_values, array.flatten())])
    if pa.types.is_map(array.type):
        return max(_values(array.keys), _values(array.items))
    return max(len(array), _values(array.values)) if pa.types.is_list(array.type) else len(array)


def _has_negative(fractions: pa.Array) -> bool:
    """Return True if a fraction, read alone, is below 0."""
    if pa.types.is_date(fractions.type):
        return False
    lowest = pc.min(fractions.view(pa.int64())).as_py()
    return lowest is not None and lowest < epoch("UTC") * _NANOSECONDS


def _joined(seconds: pa.Array, fractions: pa.Array, zone: str) -> pa.Array:
    """Join seconds and fractions, which were read apart, to times."""
    leaves: list[pa.Array] = []

    def note(leaf: pa.Array) -> pa.Array:
        leaves.append(leaf)
        return leaf

    mapped(fractions, fractions.type, note)
    each = iter(leaves)
    return mapped(seconds, fractions.type, lambda leaf: _time(leaf, next(each), zone))


def _time(seconds: pa.Array, fractions: pa.Array, zone: str) -> pa.Array:
    if pa.types.is_date(fractions.type):
        return seconds
    parts = fractions.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    nanos = parts - epoch("UTC") * _NANOSECONDS  # These are below 0 before 1970 in files of Arrow's own writer.
    whole = seconds.fill_null(0).to_numpy(zero_copy_only=False) + epoch(zone)
    whole -= (whole < 0) & (nanos >= _MILLISECOND)  # Java's writer rounds like this, and its reader reverses it.
    instants = pa.array(whole * _MICROSECONDS + nanos // 1000, mask=seconds.is_null().to_numpy(zero_copy_only=False))
    if zone in ("UTC", "GMT"):
        return instants.view(pa.timestamp("us"))
    return pc.local_timestamp(instants.view(pa.timestamp("us", zone)))
