"""The part of an ORC file behind its data: adding Hive's ACID entries to a finished file's footer.

Rule: nothing that is already in the file moves. The entries go behind the footer's existing bytes (protobuf merges
what is concatenated), as chunks marked "stored uncompressed", and only the postscript is written anew with the longer
footer. Spark cannot set user metadata on the ORC files it writes, and every Hive before 4 needs it to recognise an ACID
file.
Source: the ORC v1 specification (file tail, compression chunks), Hive's OrcRecordUpdater for the three keys.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

KEY_INDEX = "hive.acid.key.index"
STATS = "hive.acid.stats"
VERSION = "hive.acid.version"

MAX_TAIL = 256
"""Postscript and its length byte never take more."""

_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE = 1, 2, 3
_METADATA_FIELD = 5
_NO_COMPRESSION = 0
_DEFAULT_BLOCK_SIZE = 256 * 1024
_MAX_CHUNK = 2**23 - 1
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


class RowKey(NamedTuple):
    """The sort key of an event inside a file."""

    write_id: int
    bucket: int
    row_id: int


class Amendment(NamedTuple):
    """How a file changes: cut ``cut`` bytes off its end, then append ``appended``."""

    cut: int
    appended: bytes


def acid_entries(stripe_ends: Iterable[RowKey], rows: int, *, is_delete: bool) -> dict[str, bytes]:
    """Hive's three entries: the last key of every stripe, what the file holds, and the format's version."""
    index = "".join(f"{key.write_id},{key.bucket},{key.row_id};" for key in stripe_ends)
    stats = f"0,0,{rows}" if is_delete else f"{rows},0,0"
    return {KEY_INDEX: index.encode(), STATS: stats.encode(), VERSION: b"2"}


def amended(tail: bytes, entries: Mapping[str, bytes]) -> Amendment:
    """How to add ``entries`` to the file that ends with ``tail`` (the last MAX_TAIL bytes, or the whole file)."""
    postscript = tail[-1 - tail[-1] : -1]
    numbers = {number: value for number, _, value, _ in _fields(postscript) if isinstance(value, int)}
    message = b"".join(_bytes_field(_METADATA_FIELD, _entry(name, value)) for name, value in entries.items())
    if numbers.get(_COMPRESSION, _NO_COMPRESSION) != _NO_COMPRESSION:
        block = min(numbers.get(_BLOCK_SIZE, _DEFAULT_BLOCK_SIZE), _MAX_CHUNK)
        message = b"".join(_stored_chunk(message[at : at + block]) for at in range(0, len(message), block))
    length = _tag(_FOOTER_LENGTH, _VARINT) + _varint(numbers[_FOOTER_LENGTH] + len(message))
    others = b"".join(raw for number, _, _, raw in _fields(postscript) if number != _FOOTER_LENGTH)
    postscript_now = length + others
    return Amendment(len(postscript) + 1, message + postscript_now + bytes([len(postscript_now)]))


def _entry(name: str, value: bytes) -> bytes:
    return _bytes_field(1, name.encode()) + _bytes_field(2, value)


def _stored_chunk(data: bytes) -> bytes:
    return (len(data) << 1 | 1).to_bytes(3, "little") + data


def _bytes_field(number: int, data: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(data)) + data


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004
            return value, at
        shift += 7


def _fields(message: bytes) -> Iterator[tuple[int, int, int | bytes, bytes]]:
    """Number, wire type, value and raw bytes of each protobuf field."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _read_varint(message, at)
        value: int | bytes
        match tag & 7:
            case 0:
                value, at = _read_varint(message, at)
            case 2:
                size, at = _read_varint(message, at)
                value, at = message[at : at + size], at + size
            case wire_type:
                size = {_FIXED_64: 8, _FIXED_32: 4}[wire_type]
                value, at = message[at : at + size], at + size
        yield tag >> 3, tag & 7, value, message[start:at]
