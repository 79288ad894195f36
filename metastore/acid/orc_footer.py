"""The part of an ORC file behind its data: adding Hive's ACID entries to a finished file's footer.

Rule: nothing that is already in the file moves. The entries go behind the footer's existing bytes (protobuf merges
what is concatenated), as chunks marked "stored uncompressed", and only the postscript is written anew with the longer
footer. Spark cannot set user metadata on the ORC files it writes, and every Hive before 4 needs it to recognise an ACID
file.
Source: the ORC v1 specification (file tail, compression chunks), Hive's OrcRecordUpdater for the three keys.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from metastore.acid.protobuf import bytes_field, fields, number_field

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
    numbers = {number: value for number, _, value, _ in fields(postscript) if isinstance(value, int)}
    message = metadata_entries(entries)
    if numbers.get(_COMPRESSION, _NO_COMPRESSION) != _NO_COMPRESSION:
        block = min(numbers.get(_BLOCK_SIZE, _DEFAULT_BLOCK_SIZE), _MAX_CHUNK)
        message = stored(message, block)
    length = number_field(_FOOTER_LENGTH, numbers[_FOOTER_LENGTH] + len(message))
    others = b"".join(raw for number, _, _, raw in fields(postscript) if number != _FOOTER_LENGTH)
    postscript_now = length + others
    return Amendment(len(postscript) + 1, message + postscript_now + bytes([len(postscript_now)]))


def metadata_entries(entries: Mapping[str, bytes]) -> bytes:
    """User metadata as fields of the footer."""
    return b"".join(bytes_field(_METADATA_FIELD, bytes_field(1, name.encode()) + bytes_field(2, value))
                    for name, value in entries.items())


def stored(data: bytes, block: int) -> bytes:
    """Bytes as chunks of at most ``block``, marked "stored uncompressed", for a file that is compressed."""
    parts = (data[at : at + block] for at in range(0, len(data), block))
    return b"".join((len(part) << 1 | 1).to_bytes(3, "little") + part for part in parts)
