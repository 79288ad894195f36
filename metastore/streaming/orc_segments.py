"""An ORC file out of several that were written behind each other: their stripes, under a common footer.

Rule: stripes never move and are never read again. Each part is a complete ORC file of a writer that knows nothing of
what is before it; a footer that lists the stripes of all parts at their true places makes one file of them, and what
lies between (the parts' own footers, parts that were given up) is never looked at. Statistics of a stripe are kept as
they are. This is how a file can grow by one transaction after the other, which otherwise needs Java's
writer.
Source: the ORC v1 specification (file tail); Hive's OrcRecordUpdater, which writes such intermediate footers.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

from metastore.acid.orc_footer import metadata_entries, stored
from metastore.acid.protobuf import bytes_field, fields, number_field
from metastore.streaming.orc_statistics import merged

HEADER = 3
"""The bytes ``ORC`` at the beginning."""

COMPRESSIONS = ("snappy", "zlib", "uncompressed")
"""What every Hive reads; later releases know more."""

_PS_FOOTER, _PS_COMPRESSION, _PS_BLOCK, _PS_METADATA = 1, 2, 3, 5
_CONTENT, _STRIPE, _NOTES, _ROWS, _STATISTICS = 2, 3, 5, 6, 7
_STRIPE_OFFSET, _STRIPE_ROWS = 1, 5


class _Part(NamedTuple):
    """What the end of a part says."""

    postscript: bytes
    footer: bytes
    stripe_statistics: bytes


class Segments:
    """The parts that make up a file so far."""

    def __init__(self) -> None:
        self._first: _Part | None = None
        self._stripes: list[bytes] = []
        self._stripe_statistics: list[bytes] = []
        self._statistics: list[bytes] = []
        self.rows = 0

    def add(self, tail: bytes, start: int) -> list[int]:
        """Take the stripes of a finished part that begins at ``start`` and ends with ``tail``.

        Returns how many rows each of its stripes has.
        """
        part = _read_tail(tail)
        counts, statistics = [], []
        for field in fields(part.footer):
            if field.number == _STRIPE and isinstance(field.value, bytes):
                stripe = {sub_field.number: sub_field for sub_field in fields(field.value)}
                moved = number_field(_STRIPE_OFFSET, _number(stripe[_STRIPE_OFFSET].value) + start)
                others = (sub_field.raw for number, sub_field in stripe.items() if number != _STRIPE_OFFSET)
                self._stripes.append(moved + b"".join(others))
                counts.append(_number(stripe[_STRIPE_ROWS].value))
            elif field.number == _STATISTICS and isinstance(field.value, bytes):
                statistics.append(field.value)
        self._statistics = (
            [merged(*pair) for pair in zip(self._statistics, statistics, strict=True)] if self._first else statistics
        )
        self._first = self._first or part
        self._stripe_statistics.append(part.stripe_statistics)
        self.rows += sum(counts)
        return counts

    def tail(self, at: int, notes: Mapping[str, bytes]) -> bytes:
        """What to append at position ``at``, so that a whole ORC file ends there; ``notes`` is its user metadata."""
        if self._first is None:
            raise ValueError("no part was added")
        kept = (
            field.raw
            for field in fields(self._first.footer)
            if field.number not in {_CONTENT, _STRIPE, _NOTES, _ROWS, _STATISTICS}
        )
        footer = b"".join(
            (
                *kept,
                number_field(_CONTENT, at - HEADER),
                *(bytes_field(_STRIPE, stripe) for stripe in self._stripes),
                metadata_entries(notes),
                number_field(_ROWS, self.rows),
                *(bytes_field(_STATISTICS, statistic) for statistic in self._statistics),
            )
        )
        metadata = b"".join(self._stripe_statistics)
        sizes = _numbers(self._first.postscript)
        if sizes.get(_PS_COMPRESSION):
            footer, metadata = stored(footer, sizes[_PS_BLOCK]), stored(metadata, sizes[_PS_BLOCK])
        others = (
            field.raw for field in fields(self._first.postscript) if field.number not in {_PS_FOOTER, _PS_METADATA}
        )
        postscript = b"".join(
            (number_field(_PS_FOOTER, len(footer)), number_field(_PS_METADATA, len(metadata)), *others)
        )  # the magic word stays at the end, where some look for it
        return metadata + footer + postscript + bytes([len(postscript)])


def tail_size(end: bytes) -> int:
    """How many bytes behind its stripes a part has, from the last bytes (MAX_TAIL of them, or all)."""
    size = end[-1]
    numbers = _numbers(end[-1 - size : -1])
    return numbers[_PS_FOOTER] + numbers.get(_PS_METADATA, 0) + size + 1


def _read_tail(tail: bytes) -> _Part:
    size = tail[-1]
    postscript = tail[-1 - size : -1]
    numbers = _numbers(postscript)
    footer_at = len(tail) - 1 - size - numbers[_PS_FOOTER]
    metadata_at = footer_at - numbers.get(_PS_METADATA, 0)
    if metadata_at < 0:
        raise ValueError(f"the footer of a part takes more than {len(tail)} bytes")
    expand = _EXPANDERS[numbers.get(_PS_COMPRESSION, 0)]
    return _Part(postscript, expand(tail[footer_at : -1 - size]), expand(tail[metadata_at:footer_at]))


def _numbers(message: bytes) -> dict[int, int]:
    return {field.number: field.value for field in fields(message) if isinstance(field.value, int)}


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0


def _chunks(data: bytes) -> Iterator[tuple[bool, bytes]]:
    """(Whether it is stored as it is, content) of each compression chunk."""
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        at += 3
        yield bool(header & 1), data[at : at + (header >> 1)]
        at += header >> 1


def _unzipped(data: bytes) -> bytes:
    return b"".join(chunk if plain else zlib.decompress(chunk, -zlib.MAX_WBITS) for plain, chunk in _chunks(data))


def _unsnapped(data: bytes) -> bytes:
    return b"".join(chunk if plain else _snappy(chunk) for plain, chunk in _chunks(data))


def _snappy(chunk: bytes) -> bytes:
    """Snappy's blocks begin with their length."""
    length = shift = 0
    for byte in chunk:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            break
    return bytes(pa.Codec("snappy").decompress(chunk, length, asbytes=True))


_EXPANDERS: dict[int, Callable[[bytes], bytes]] = {0: bytes, 1: _unzipped, 2: _unsnapped}
