"""Hive's bucket hashes: the ``bucket_N`` of each row of a CLUSTERED BY table.

Rule: version 2 (Murmur3) when the table says ``bucketing_version=2``, else version 1 (Java's hashCode). All arithmetic
is that of Java ints, and the quirks are Hive's: its Murmur3 sign-extends the tail bytes (no library does), floats are
hashed as the float nearest to their bits read as an integer, tiny types are not hashed at all. Spark's bucketBy is
neither.
Source: ACID-13; ObjectInspectorUtils, Murmur3 of Hive's storage API.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from metastore.acid.types import HiveType
from metastore.errors import InvalidInputError

_MASK = 0xFFFFFFFF
SEED = 104729
"""Of Murmur3 in Hive."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_INTEGER_BYTES = {"smallint": 2, "int": 4, "bigint": 8}
_TEXT = ("string", "varchar", "char", "binary")
_NOT_HASHED = ("boolean", "tinyint")


def bucket_of(values: Sequence[Any], types: Sequence[HiveType], buckets: int, version: int) -> int:
    """Return the bucket of a row, given its bucketing columns in CLUSTERED BY order."""
    return (row_hash(values, types, version) & 0x7FFFFFFF) % buckets


def row_hash(values: Sequence[Any], types: Sequence[HiveType], version: int) -> int:
    """Return the combined hash of several columns, as a Java int.

    Values are Python's: int, float, str, bytes, Decimal, date, datetime (naive: as shown), list, dict, tuple; or None.
    Raises: InvalidInputError for a type that the version cannot hash.
    """
    return _signed(_combined(values, types, version))


def murmur3(data: bytes) -> int:
    """Return Hive's Murmur3.hash32, as a Java int."""
    result = SEED
    blocks = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:blocks]):
        result = (_rotated(result ^ _mixed(block), 13) * 5 + 0xE6546B64) & _MASK
    tail = 0
    for place, byte in enumerate(data[blocks:]):
        tail ^= (byte - 256 if byte > 127 else byte) << 8 * place  # noqa: PLR2004 - Java's bytes are signed
    if len(data) > blocks:
        result ^= _mixed(tail & _MASK)
    result ^= len(data)
    result = (result ^ result >> 16) * 0x85EBCA6B & _MASK
    result = (result ^ result >> 13) * 0xC2B2AE35 & _MASK
    return _signed(result ^ result >> 16)


def _mixed(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & _MASK


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 32) if value >> 31 else value


def _combined(values: Sequence[Any], types: Sequence[HiveType], version: int) -> int:
    result = 0
    for value, kind in zip(values, types, strict=True):
        result = (31 * result + _hash(value, kind, version)) & _MASK
    return result


def _hash(value: Any, kind: HiveType, version: int) -> int:
    if value is None:
        return 0
    match kind.kind:
        case "array":
            return _combined(value, kind.children * len(value), version)
        case "struct":
            return _combined(value, kind.children, version)
        case "map":
            return _map_hash(value, kind, version)
        case name if name in _NOT_HASHED:
            return int(value)
    return murmur3(_bytes(value, kind)) if version == 2 else _java_hash(value, kind)  # noqa: PLR2004


def _map_hash(value: Mapping[Any, Any], kind: HiveType, version: int) -> int:
    key_type, value_type = kind.children
    pairs = ((_hash(key, key_type, version), _hash(item, value_type, 1)) for key, item in value.items())
    return sum(_signed(key_hash) ^ _signed(other) for key_hash, other in pairs) & _MASK


def _java_hash(value: Any, kind: HiveType) -> int:
    """Return the hash of version 1."""
    match kind.kind:
        case "smallint" | "int":
            return int(value)
        case "bigint":
            return _folded(value)
        case "float":
            return _float_bits(value)
        case "double":
            return _folded(_double_bits(value))
        case "date":
            return _days(value)
        case "timestamp":
            seconds, nanos = _seconds(value)
            return _folded(seconds << 30 | nanos)
        case "decimal":
            unscaled, scale = _unscaled(value)
            return 31 * _big_integer_hash(unscaled) + scale
        case name if name in _TEXT:
            return _bytes_hash(_bytes(value, kind), 0 if name == "string" else 1)
        case _:
            raise _unhashable(kind, 1)


def _bytes(value: Any, kind: HiveType) -> bytes:
    """Return the bytes that version 2 hashes."""
    match kind.kind:
        case name if name in _INTEGER_BYTES:
            return int(value).to_bytes(_INTEGER_BYTES[name], "big", signed=True)
        case "float":
            return struct.pack(">f", float(_float_bits(value)))
        case "double":
            return struct.pack(">d", float(_double_bits(value)))
        case "date":
            return _days(value).to_bytes(4, "big", signed=True)
        case "decimal":
            unscaled, _ = _unscaled(value)
            bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
            return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)
        case "char":
            return str(value).rstrip(" ").encode()
        case "string" | "varchar":
            return str(value).encode()
        case "binary":
            return bytes(value)
        case _:
            raise _unhashable(kind, 2)


def _bytes_hash(data: bytes, start: int) -> int:
    result = start
    for byte in data:
        result = (31 * result + (byte - 256 if byte > 127 else byte)) & _MASK  # noqa: PLR2004
    return result


def _folded(value: int) -> int:
    value &= (1 << 64) - 1
    return (value >> 32 ^ value) & _MASK


def _float_bits(value: float) -> int:
    return 0x7FC00000 if math.isnan(value) else int(struct.unpack(">i", struct.pack(">f", value))[0])


def _double_bits(value: float) -> int:
    return 0x7FF8000000000000 if math.isnan(value) else int(struct.unpack(">q", struct.pack(">d", value))[0])


def _days(value: date) -> int:
    return value.toordinal() - _EPOCH_DAY


def _seconds(value: datetime) -> tuple[int, int]:
    """Return whole seconds since 1970, and nanoseconds; a naive value is taken as it is shown."""
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return math.floor(moment.replace(microsecond=0).timestamp()), moment.microsecond * 1000


def _unscaled(value: Decimal) -> tuple[int, int]:
    """Return unscaled value and scale, without trailing zeros behind the point (HiveDecimal always trims them)."""
    sign, digits, exponent = value.as_tuple()
    number, scale = int("".join(map(str, digits)) or "0"), -int(exponent)
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    if scale < 0:
        number, scale = number * 10**-scale, 0
    return -number if sign else number, scale


def _big_integer_hash(value: int) -> int:
    magnitude, result = abs(value), 0
    words = [magnitude >> shift & _MASK for shift in range(0, magnitude.bit_length(), 32)]
    for word in reversed(words):
        result = 31 * result + word & _MASK
    return result if value >= 0 else -result


def _unhashable(kind: HiveType, version: int) -> InvalidInputError:
    return InvalidInputError(f"A table cannot be bucketed by a {kind.kind} column with bucketing version {version}")
