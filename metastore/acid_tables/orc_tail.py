"""The end of an ORC file: parser of postscript, footer and stripe statistics, without rows.

Source: the ORC v1 specification (file tail, compression chunks, stripe footer).
"""

import zlib
from collections.abc import Callable, Iterator
from os import SEEK_END
from typing import Any, NamedTuple

import pyarrow as pa

from metastore.acid.protobuf import fields, number_field

MAGIC = b"ORC"
MAX_POSTSCRIPT = 256
"""The postscript and its length byte never take more."""

PS_FOOTER, PS_COMPRESSION, PS_BLOCK, PS_METADATA = 1, 2, 3, 5
CONTENT, STRIPE, TYPE, ROWS, STATISTICS, INDEX_STRIDE, CALENDAR = 2, 3, 4, 6, 7, 8, 11
"""Fields of the footer."""

STRIPE_OFFSET, STRIPE_INDEX, STRIPE_DATA, STRIPE_FOOTER, STRIPE_ROWS = 1, 2, 3, 4, 5
HYBRID, PROLEPTIC = 1, 2
"""Calendars, in the footer: Julian before 1582-10-15 as Hive's and Spark's writers, or Gregorian for ever."""

LONG, TIMESTAMP, STRUCT = 4, 9, 12
_KIND, _GUESS = 1, 16 * 1024


class Tail(NamedTuple):
    """The part of a file behind the stripes; footer and stripe statistics are expanded."""

    postscript: bytes
    footer: bytes
    stripe_statistics: bytes

    @classmethod
    def parsed(cls, end: bytes) -> "Tail":
        """Parse the tail at the end of ``end``. Raises: ValueError if ``end`` is too short."""
        size = end[-1]
        postscript = end[-1 - size : -1]
        sizes = numbers(postscript)
        footer_at = len(end) - 1 - size - sizes[PS_FOOTER]
        metadata_at = footer_at - sizes.get(PS_METADATA, 0)
        if metadata_at < 0:
            raise ValueError(f"the footer of a part takes more than {len(end)} bytes")
        expand = _expander(sizes)
        return cls(postscript, expand(end[footer_at : -1 - size]), expand(end[metadata_at:footer_at]))

    @classmethod
    def of(cls, source: Any) -> "Tail":
        """Read the tail of an open file."""
        size = source.seek(0, SEEK_END)
        source.seek(max(0, size - _GUESS))
        end = source.read()
        if (needed := tail_size(end)) > len(end):
            source.seek(size - needed)
            end = source.read()
        return cls.parsed(end)

    @property
    def is_proleptic(self) -> bool:
        """True if dates and times are proleptic Gregorian; a footer that does not say means the hybrid calendar."""
        return numbers(self.footer).get(CALENDAR) == PROLEPTIC

    @property
    def block(self) -> int:
        """The largest size of a compression chunk; 0 if the file is not compressed."""
        sizes = numbers(self.postscript)
        return sizes[PS_BLOCK] if sizes.get(PS_COMPRESSION) else 0

    def expanded(self, data: bytes) -> bytes:
        """Decompress bytes of this file."""
        return _expander(numbers(self.postscript))(data)

    def stripes(self) -> list[dict[int, int]]:
        """Return the fields of the stripes' descriptions."""
        return [numbers(field.content) for field in self._repeated(STRIPE)]

    def kinds(self) -> list[int]:
        """Return the kinds of the columns, by their numbers."""
        return [numbers(field.content).get(_KIND, 0) for field in self._repeated(TYPE)]

    def _repeated(self, number: int) -> Iterator[Any]:
        return (field for field in fields(self.footer) if field.number == number)


def numbers(message: Any) -> dict[int, int]:
    """Return the fields of a message that hold numbers, by field number."""
    return {field.number: field.value for field in fields(message) if isinstance(field.value, int)}


def with_kind(described: Any, kind: int) -> bytes:
    """Return a column's description with another kind."""
    return number_field(_KIND, kind) + b"".join(field.raw for field in fields(described) if field.number != _KIND)


def stored(data: bytes, block: int) -> bytes:
    """Wrap bytes in chunks marked "stored uncompressed"; leave them as they are without compression (``block`` 0)."""
    if not block:
        return data
    parts = (data[at : at + block] for at in range(0, len(data), block))
    return b"".join((len(part) << 1 | 1).to_bytes(3, "little") + part for part in parts)


def tail_bytes(tail: Tail, footer: bytes, stripe_statistics: bytes) -> bytes:
    """Encode a tail like ``tail`` with another footer and other statistics of stripes."""
    footer, statistics = stored(footer, tail.block), stored(stripe_statistics, tail.block)
    others = (field.raw for field in fields(tail.postscript) if field.number not in {PS_FOOTER, PS_METADATA})
    postscript = b"".join(
        (number_field(PS_FOOTER, len(footer)), number_field(PS_METADATA, len(statistics)), *others)
    )  # The magic word stays at the end, where some readers look for it.
    return statistics + footer + postscript + bytes([len(postscript)])


def tail_size(end: bytes) -> int:
    """Return the number of bytes behind the stripes, from a file's last bytes (MAX_POSTSCRIPT of them, or all)."""
    size = end[-1]
    sizes = numbers(end[-1 - size : -1])
    return sizes[PS_FOOTER] + sizes.get(PS_METADATA, 0) + size + 1


def _expander(sizes: dict[int, int]) -> Callable[[bytes], bytes]:
    kind = sizes.get(PS_COMPRESSION, 0)
    if not kind:
        return bytes
    if kind not in _CODECS:
        raise ValueError(f"compression {kind} is unknown")
    one = _CODECS[kind]
    return lambda data: b"".join(chunk if is_plain else one(chunk) for is_plain, chunk in _chunks(data))


def _chunks(data: bytes) -> Iterator[tuple[bool, bytes]]:
    """Yield each compression chunk: True if it is stored as it is, and the content."""
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        at += 3
        yield bool(header & 1), data[at : at + (header >> 1)]
        at += header >> 1


def _snappy(chunk: bytes) -> bytes:
    """Expand a block of Snappy, which begins with its length."""
    length = shift = 0
    for byte in chunk:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            break
    return bytes(pa.Codec("snappy").decompress(chunk, length, asbytes=True))


def _lz4(chunk: bytes) -> bytes:
    """Expand a block of LZ4; its length follows from those of literals and matches."""
    at = size = 0
    while True:
        token = chunk[at]
        literals, at = _lz4_length(chunk, at + 1, token >> 4)
        at += literals
        size += literals
        if at >= len(chunk):
            return bytes(pa.Codec("lz4_raw").decompress(chunk, size, asbytes=True))
        match, at = _lz4_length(chunk, at + 2, token & 15)
        size += match + 4


def _lz4_length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    more = 255 if length == 15 else 0  # noqa: PLR2004 - the largest number of four bits goes on in the next bytes
    while more == 255:  # noqa: PLR2004 - as does the largest of eight
        more = chunk[at]
        length += more
        at += 1
    return length, at


_CODECS: dict[int, Callable[[bytes], bytes]] = {
    1: lambda chunk: zlib.decompress(chunk, -zlib.MAX_WBITS),
    2: _snappy,
    4: _lz4,
    5: lambda chunk: bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read()),
}
