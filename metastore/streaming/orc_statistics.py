"""Merger of the statistics of a column over two parts of an ORC file.

Rule: readers skip rows that the statistics exclude, so a bound is kept only if it is known to hold for both parts;
unknown bounds are left out, and mislead no reader. The message of the column's type stays, since readers expect it.
Source: the ORC v1 specification (ColumnStatistics).
"""

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from metastore.acid.protobuf import (
    FIXED_64,
    VARINT,
    ProtobufField,
    bytes_field,
    fields,
    number_field,
    unzigzag,
    varint,
    zigzag,
)

_COUNT, _HAS_NULL, _BYTES_ON_DISK = 1, 10, 11
_INT_64 = range(-(2**63), 2**63)


class _Codec(NamedTuple):
    """The encoding of a value in a message; ``write`` gives None for a value that it cannot hold."""

    read: Callable[[Any], Any]
    write: Callable[[int, Any], bytes | None]


def _write_signed(number: int, value: int) -> bytes | None:
    return number_field(number, zigzag(value)) if value in _INT_64 else None


def _write_double(number: int, value: float) -> bytes | None:
    return varint(number << 3 | FIXED_64) + struct.pack("<d", value)


def _write_decimal(number: int, value: Decimal) -> bytes | None:
    return bytes_field(number, f"{value:f}".encode())


_SIGNED = _Codec(unzigzag, _write_signed)
_COUNTER = _Codec(int, number_field)
_DOUBLE = _Codec(lambda raw: struct.unpack("<d", raw)[0], _write_double)
_TEXT = _Codec(bytes, bytes_field)
_DECIMAL = _Codec(lambda raw: Decimal(raw.decode()), _write_decimal)

_Rules = Mapping[int, tuple[_Codec, Callable[[Iterable[Any]], Any]]]
_TYPES: dict[int, _Rules] = {
    2: {1: (_SIGNED, min), 2: (_SIGNED, max), 3: (_SIGNED, sum)},  # integers
    3: {1: (_DOUBLE, min), 2: (_DOUBLE, max), 3: (_DOUBLE, sum)},
    4: {1: (_TEXT, min), 2: (_TEXT, max), 3: (_SIGNED, sum)},  # Strings: bounds that were cut short are left out.
    5: {},  # Booleans: the count of true values.
    6: {1: (_DECIMAL, min), 2: (_DECIMAL, max)},
    7: {1: (_SIGNED, min), 2: (_SIGNED, max)},  # dates
    8: {1: (_SIGNED, sum)},  # binary
    9: {},  # Timestamps: four bounds and two parts of nanoseconds that belong together.
    12: {1: (_COUNTER, min), 2: (_COUNTER, max), 3: (_COUNTER, sum)},  # lists and maps
}


def merged(first: bytes, other: bytes) -> bytes:
    """Merge the statistics of two columns."""
    sides = [{field.number: field for field in fields(part)} for part in (first, other)]
    result = b"".join(
        number_field(number, sum(_number(side, number) for side in sides))
        for number in (_COUNT, _BYTES_ON_DISK)
        if any(number in side for side in sides)
    )
    result += number_field(_HAS_NULL, int(any(_number(side, _HAS_NULL) for side in sides)))
    with_values = [side for side in sides if _number(side, _COUNT)]
    for number in sorted({number for side in sides for number in side if number in _TYPES}):
        parts = [side[number].value for side in with_values if number in side]
        complete = len(parts) == len(with_values)
        result += bytes_field(number, _combined(_TYPES[number], parts) if complete else b"")
    return result


def _number(side: Mapping[int, ProtobufField], number: int) -> int:
    field = side.get(number)
    return field.value if field and field.wire_type == VARINT and isinstance(field.value, int) else 0


def _combined(rules: _Rules, parts: Iterable[int | bytes]) -> bytes:
    known = [{field.number: field.value for field in fields(part)} for part in parts if isinstance(part, bytes)]
    result = b""
    for number, (codec, pick) in rules.items():
        if known and all(number in part for part in known):
            values = [codec.read(part[number]) for part in known]
            if not any(isinstance(value, float) and math.isnan(value) for value in values):
                result += codec.write(number, pick(values)) or b""
    return result
