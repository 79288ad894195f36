"""ORC files made of several that were written behind each other: their stripes, under a common footer.

Rule: stripes never move and are never read again. Each part is a complete ORC file of a writer that knows nothing of
what is before it; a footer that lists the stripes of all parts at their true positions makes one file of them, and the
bytes between (the parts' own footers, abandoned parts) are never read. Statistics of a stripe are kept as they are. In
this way a file can grow by one transaction after the other, which otherwise needs Java's writer. Source: the ORC v1
specification (file tail); Hive's OrcRecordUpdater, which writes such intermediate footers.
"""

from collections.abc import Mapping

from metastore.acid.orc_footer import metadata_entries
from metastore.acid.protobuf import bytes_field, fields, number_field
from metastore.acid_tables.orc_tail import (
    CALENDAR,
    CONTENT,
    HYBRID,
    INDEX_STRIDE,
    ROWS,
    STATISTICS,
    STRIPE,
    STRIPE_OFFSET,
    STRIPE_ROWS,
    Tail,
    numbers,
    tail_bytes,
)
from metastore.streaming.orc_statistics import merged

HEADER = 3
"""The bytes ``ORC`` at the beginning."""

COMPRESSIONS = ("snappy", "zlib", "uncompressed")
"""What every Hive reads; later releases know more."""

_NOTES = 5


class Segments:
    """The parts that make up a file so far."""

    def __init__(self) -> None:
        self._first: Tail | None = None
        self._stripes: list[bytes] = []
        self._stripe_statistics: list[bytes] = []
        self._statistics: list[bytes] = []
        self._index_stride = 0
        """None of the file's stripes is said to have an index where a part has none."""
        self.rows = 0

    def add(self, tail: bytes, start: int) -> list[int]:
        """Add the stripes of a finished part that begins at ``start`` and ends with ``tail``.

        Returns the number of rows of each stripe.
        """
        part = Tail.parsed(tail)
        counts, statistics = [], []
        for field in fields(part.footer):
            if field.number == STRIPE and isinstance(field.value, bytes):
                stripe = {sub_field.number: sub_field for sub_field in fields(field.value)}
                moved = number_field(STRIPE_OFFSET, _number(stripe[STRIPE_OFFSET].value) + start)
                others = (sub_field.raw for number, sub_field in stripe.items() if number != STRIPE_OFFSET)
                self._stripes.append(moved + b"".join(others))
                counts.append(_number(stripe[STRIPE_ROWS].value))
            elif field.number == STATISTICS and isinstance(field.value, bytes):
                statistics.append(field.value)
        self._statistics = (
            [merged(*pair) for pair in zip(self._statistics, statistics, strict=True)] if self._first else statistics
        )
        stride = numbers(part.footer).get(INDEX_STRIDE, 0)
        self._index_stride = min(self._index_stride, stride) if self._first else stride
        self._first = self._first or part
        self._stripe_statistics.append(part.stripe_statistics)
        self.rows += sum(counts)
        return counts

    def tail(self, at: int, notes: Mapping[str, bytes]) -> bytes:
        """Return the bytes to append at position ``at`` that complete an ORC file; ``notes`` is its user metadata."""
        if self._first is None:
            raise ValueError("no part was added")
        kept = (
            field.raw
            for field in fields(self._first.footer)
            if field.number not in {CONTENT, STRIPE, _NOTES, ROWS, STATISTICS, INDEX_STRIDE, CALENDAR}
        )
        footer = b"".join(
            (
                *kept,
                number_field(CONTENT, at - HEADER),
                *(bytes_field(STRIPE, stripe) for stripe in self._stripes),
                metadata_entries(notes),
                number_field(ROWS, self.rows),
                *(bytes_field(STATISTICS, statistic) for statistic in self._statistics),
                number_field(INDEX_STRIDE, self._index_stride),
                number_field(CALENDAR, HYBRID),
            )
        )
        return tail_bytes(self._first, footer, b"".join(self._stripe_statistics))


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0
