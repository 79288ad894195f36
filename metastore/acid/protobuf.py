"""Protobuf's wire format, as far as ORC file tails need it: fields are decoded and encoded without a schema."""

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class ProtobufField(NamedTuple):
    """One field of a protobuf message. ``value``: an integer for VARINT, else bytes; ``raw``: the field as encoded."""

    number: int
    wire_type: int
    value: int | bytes
    raw: bytes

    @property
    def content(self) -> bytes:
        """The bytes, text or message that the field must hold. Raises: ValueError for a number."""
        if isinstance(self.value, int):
            raise ValueError(f"field {self.number} is the number {self.value}, where bytes are expected")  # noqa: TRY004 - what is wrong is the file
        return self.value


def varint(value: int) -> bytes:
    """Encode a number in seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> int:
    """Encode a signed number as an unsigned number of equal length."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """Decode the result of ``zigzag``."""
    return value >> 1 if not value & 1 else -(value + 1 >> 1)


def number_field(number: int, value: int) -> bytes:
    """Encode a field that holds an unsigned number."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, data: bytes) -> bytes:
    """Encode a field that holds bytes, a text or a message."""
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def fields(message: bytes) -> Iterator[ProtobufField]:
    """Yield the fields of a message, in their order. Raises: ValueError for an incomplete message."""
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
                value, at = _taken(message, at, size)
            case 1:
                value, at = _taken(message, at, 8)
            case 5:
                value, at = _taken(message, at, 4)
            case wire_type:
                raise ValueError(f"wire type {wire_type} at byte {start} is none of ORC's")
        yield ProtobufField(tag >> 3, tag & 7, value, message[start:at])


def _taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise ValueError(f"{size} bytes are to follow byte {at}, and there are {len(data) - at}")
    return data[at : at + size], at + size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004
            return value, at + place + 1
    raise ValueError(f"the number at byte {at} has no end")
