"""Messages as bytes in the binary and compact protocol: their method, their arguments and their answers.

Rule: a length in a message is not believed before the bytes are there. Values are read and written by Thrift's
accelerated codec; a message that does not arrive whole goes through `metastore.thrift_server.wire.scanner` first.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from thrift.protocol import fastbinary
from thrift.Thrift import TApplicationException, TMessageType

from metastore.thrift_server.wire.codec import (
    APPLICATION_EXCEPTION,
    CODECS,
    SKIP,
    MessageSource,
    MethodCodec,
    Nothing,
    ReplyField,
)
from metastore.thrift_server.wire.scanner import BinaryScanner, CompactScanner, MalformedError, Scanner

LONGEST_NAME = 1024


class Header(NamedTuple):
    """The beginning of a message."""

    method: str
    message_type: int
    seqid: bytes
    """The sequence id as received, to be sent back as it is."""
    end: int
    """The position where the arguments begin."""


class Message(NamedTuple):
    """A message with its decoded arguments, or with the decoder's complaint, or still as bytes."""

    header: Header
    arguments: Any = None
    complaint: str = ""
    data: bytes | None = None
    """The whole of a large message."""
    raw: bytes | None = None
    """The whole message, if its bytes go on to the upstream."""


class MapEntry(NamedTuple):
    """An entry of a map from texts to lists of structs."""

    struct: type

    def __call__(self) -> tuple[str, list[Any]]:
        """Return an entry to try with."""
        return "", []


Kind = type | MapEntry
"""The kind of a list's elements: the class of a struct, ``str``, or a stand-in for a map."""


class ArgumentsCodec(Protocol):
    """The codec of a method's arguments; see `MethodCodec`."""

    arguments_class: Any
    arguments: list[Any]
    older: Any

    def source(self, data: bytes, at: int) -> MessageSource:
        """Return a source that reads the arguments from ``at`` on."""


class WireProtocol(Protocol):
    """A protocol of Thrift."""

    def header(self, data: bytes | bytearray, at: int) -> Header | None:
        """Return the header at this position; None if it is not complete. Raises: MalformedError."""

    def scanner(self, at: int, limit: int, most: int) -> Scanner:
        """Return a scanner for the end of the arguments at ``at``, within ``limit`` bytes and ``most`` values."""

    def decode(self, codec: ArgumentsCodec | None, data: bytes, at: int) -> tuple[Any, int]:
        """Decode the arguments (None for an unknown method); return them and their end.

        Raises: ShortError and the decoder's own.
        """

    def head(self, codec: MethodCodec, seqid: bytes) -> bytes:
        """Return the bytes before the ``body`` of a result."""

    def body(self, codec: MethodCodec, result: Any) -> bytes:
        """Encode the result of a call; encoding errors of all kinds are raised."""

    def around(
        self, codec: MethodCodec, whole: Callable[[list[Any]], Any], kind: Kind, count: int
    ) -> tuple[bytes, bytes]:
        """Return the bytes before and after a list's elements in a ``body``.

        It is the body of the result that ``whole`` makes of the list.
        """

    def elements(self, kind: Kind, piece: bytes) -> bytes:
        """Convert elements of a list, one after the other, from the binary protocol."""

    def declared_exception(self, codec: MethodCodec, seqid: bytes, exception: Exception) -> bytes:
        """Encode a message with an exception that the method declares."""

    def application_exception(self, method: str, seqid: bytes, exception: TApplicationException) -> bytes:
        """Encode a message with an error outside of the method's declaration."""


class _Accelerated:
    """The common part of both protocols, which differ in the header and in the codec's two functions."""

    def __init__(self, decode: Any, encode: Any) -> None:
        self._decode, self._encode = decode, encode

    _length_size: int
    """Bytes that the length of an empty list takes."""

    def _header(self, method: str, message_type: int, seqid: bytes) -> bytes:
        raise NotImplementedError

    def _length(self, kind: Kind, count: int, empty: int) -> bytes:
        """Return the length of a list, in the form in which it precedes its elements.

        ``empty``: the last byte of the length of an empty list.
        """
        raise NotImplementedError

    def decode(self, codec: ArgumentsCodec | None, data: bytes, at: int) -> tuple[Any, int]:
        """Decode the arguments: see `WireProtocol`."""
        if codec is None:
            source = MessageSource(data, at)
            self._decode(Nothing(), source, SKIP)
            return None, source.cstringio_buf.tell()
        source = codec.source(data, at)
        arguments = codec.arguments_class()
        self._decode(arguments, source, codec.arguments)
        if codec.older is not None:
            suspected, older, sensible = codec.older
            if suspected(arguments):
                again = codec.arguments_class()
                self._decode(again, codec.source(data, at), older)
                if sensible(again):
                    arguments = again
        return arguments, source.cstringio_buf.tell()

    def head(self, codec: MethodCodec, seqid: bytes) -> bytes:
        """Return the bytes before the body: see `WireProtocol`."""
        return self._header(codec.name, TMessageType.REPLY, seqid)

    def body(self, codec: MethodCodec, result: Any) -> bytes:
        """Encode the result: see `WireProtocol`."""
        encoded: bytes = b"\0" if codec.success is None else self._encode(ReplyField(result), codec.success)
        return encoded

    def around(
        self, codec: MethodCodec, whole: Callable[[list[Any]], Any], kind: Kind, count: int
    ) -> tuple[bytes, bytes]:
        """Return the bytes around elements: see `WireProtocol`.

        The length is where lists of no and of one element differ.
        """
        empty, single = self.body(codec, whole([])), self.body(codec, whole([kind()]))
        at = next(place for place, (ours, other) in enumerate(zip(empty, single, strict=False)) if ours != other)
        return empty[: at + 1 - self._length_size] + self._length(kind, count, empty[at]), empty[at + 1 :]

    def declared_exception(self, codec: MethodCodec, seqid: bytes, exception: Exception) -> bytes:
        """Encode an exception: see `WireProtocol`."""
        body = self._encode(ReplyField(exception), codec.exceptions[type(exception)])
        return self.head(codec, seqid) + body

    def application_exception(self, method: str, seqid: bytes, exception: TApplicationException) -> bytes:
        """Encode an error: see `WireProtocol`."""
        answer = ReplyField(message=exception.message, kind=exception.type)
        return self._header(method, TMessageType.EXCEPTION, seqid) + self._encode(answer, APPLICATION_EXCEPTION)


_VERSION_1 = 0x8001
_BEGIN = struct.Struct(">HBBi")
_LENGTH = struct.Struct(">i")


class BinaryProtocol(_Accelerated):
    """The TBinaryProtocol; requests with and without a version in the header, replies always with."""

    _length_size = 4

    def __init__(self) -> None:
        super().__init__(fastbinary.decode_binary, fastbinary.encode_binary)
        self._names = {name.encode(): name for name in CODECS}
        # This is the beginning of nearly all requests, and of all their replies, up to the sequence id.
        self._requests = {
            _begin(name, kind): (name, kind) for name in CODECS for kind in (TMessageType.CALL, TMessageType.ONEWAY)
        }
        self._replies = {name: _begin(name, TMessageType.REPLY) for name in CODECS}

    def header(self, data: bytes | bytearray, at: int) -> Header | None:
        """Return the header: see `WireProtocol`."""
        if len(data) < at + 8:
            return None
        end = at + 12 + data[at + 7]  # This is the low byte of the name's length.
        request = self._requests.get(bytes(data[at : end - 4]))
        if request is not None and end <= len(data):
            return Header(*request, bytes(data[end - 4 : end]), end)
        version, _, message_type, length = _BEGIN.unpack_from(data, at)
        if version == _VERSION_1:
            name_at = at + 8
            end = name_at + length + 4
            type_at = -1
        else:  # Without a version: length, name, type, sequence id.
            length = _LENGTH.unpack_from(data, at)[0]
            name_at = at + 4
            end = name_at + length + 5
            type_at = end - 5
        if not 0 < length <= LONGEST_NAME:
            raise MalformedError("no Thrift message begins like this")
        if len(data) < end:
            return None
        if type_at >= 0:
            message_type = data[type_at]
        raw = bytes(data[name_at : name_at + length])
        return Header(self._names.get(raw) or _name(raw), message_type, bytes(data[end - 4 : end]), end)

    def scanner(self, at: int, limit: int, most: int) -> Scanner:
        """Return a scanner: see `WireProtocol`."""
        return BinaryScanner(at, limit, most)

    def head(self, codec: MethodCodec, seqid: bytes) -> bytes:
        """Return the bytes before the body: see `WireProtocol`."""
        return self._replies[codec.name] + seqid

    def elements(self, kind: Kind, piece: bytes) -> bytes:  # noqa: ARG002 - they are in this protocol
        """Convert elements: see `WireProtocol`."""
        return piece

    def _length(self, kind: Kind, count: int, empty: int) -> bytes:  # noqa: ARG002 - the type stands before it
        return count.to_bytes(4)

    def _header(self, method: str, message_type: int, seqid: bytes) -> bytes:
        return _begin(method, message_type) + seqid


def _begin(method: str, message_type: int) -> bytes:
    name = method.encode()
    return _BEGIN.pack(_VERSION_1, 0, message_type, len(name)) + name


_COMPACT_ID = 0x82
_MORE = 0x80  # The bit is set in every byte of a varint but the last.
_LONG_LIST = 15  # From this size on the number stands in a varint of its own.
_STRUCT = 0x0C
_TEXTS_TO_LISTS = b"\x89"


class CompactProtocol(_Accelerated):
    """The TCompactProtocol."""

    _length_size = 1

    def __init__(self) -> None:
        super().__init__(fastbinary.decode_compact, fastbinary.encode_compact)

    def header(self, data: bytes | bytearray, at: int) -> Header | None:
        """Return the header: see `WireProtocol`."""
        if len(data) < at + 4:
            return None
        if data[at] != _COMPACT_ID or data[at + 1] & 0x1F != 1:
            raise MalformedError("no Thrift message of the compact protocol begins like this")
        message_type = data[at + 1] >> 5
        seqid_end = _varint_end(data, at + 2)
        length_end = _varint_end(data, seqid_end) if seqid_end else 0
        if not seqid_end or not length_end:
            return None
        length = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data[seqid_end:length_end]))
        if not 0 < length <= LONGEST_NAME:
            raise MalformedError("the name of the method is too long")
        end = length_end + length
        if len(data) < end:
            return None
        return Header(_name(data[length_end:end]), message_type, bytes(data[at + 2 : seqid_end]), end)

    def scanner(self, at: int, limit: int, most: int) -> Scanner:
        """Return a scanner: see `WireProtocol`."""
        return CompactScanner(at, limit, most)

    def elements(self, kind: Kind, piece: bytes) -> bytes:
        """Convert elements: see `WireProtocol`. The structs of a piece exist as objects only meanwhile."""
        if kind is str:
            return _texts(piece)
        if isinstance(kind, MapEntry):
            return b"".join(self._entries(kind.struct, piece))
        source, encoded = MessageSource(piece, 0), []
        while source.cstringio_buf.tell() < len(piece):
            encoded.append(self._struct(kind, source))
        return b"".join(encoded)

    def _entries(self, struct: type, piece: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(piece):
            start = at + _LENGTH.size
            end = start + int.from_bytes(piece[at:start])
            source = MessageSource(
                piece, end + 1 + _LENGTH.size
            )  # The first struct follows the list's element type and its length.
            [count] = _LENGTH.unpack_from(piece, end + 1)
            yield _varint(end - start) + piece[start:end] + self._length(struct, count, _STRUCT)
            for _ in range(count):
                yield self._struct(struct, source)
            at = source.cstringio_buf.tell()

    def _struct(self, struct: type, source: MessageSource) -> bytes:
        spec: list[Any] = [struct, struct.thrift_spec]  # type: ignore[attr-defined]
        made = struct()
        fastbinary.decode_binary(made, source, spec)
        encoded: bytes = self._encode(made, spec)
        return encoded

    def _length(self, kind: Kind, count: int, empty: int) -> bytes:
        """Return the length: the type of the elements is in the first byte, also of an empty list.

        A map has its types behind its length. Those of an empty map are left out.
        """
        if isinstance(kind, MapEntry):
            return _varint(count) + _TEXTS_TO_LISTS if count else b"\0"
        if count < _LONG_LIST:
            return bytes((count << 4 | empty,))
        return bytes((_LONG_LIST << 4 | empty,)) + _varint(count)

    def _header(self, method: str, message_type: int, seqid: bytes) -> bytes:
        name = method.encode()
        length = bytes((len(name),)) if len(name) < _MORE else bytes((len(name) & 0x7F | _MORE, len(name) >> 7))
        return bytes((_COMPACT_ID, message_type << 5 | 1)) + seqid + length + name


def _name(raw: bytes | bytearray) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedError("the name of the method is not text") from None


def _texts(piece: bytes) -> bytes:
    """Convert texts with lengths of four bytes to lengths of any size."""
    parts: list[bytes] = []
    at = 0
    while at < len(piece):
        start = at + 4
        at = start + int.from_bytes(piece[at:start])
        parts += _varint(at - start), piece[start:at]
    return b"".join(parts)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= _MORE:
        encoded.append(number & 0x7F | _MORE)
        number >>= 7
    return bytes((*encoded, number))


def _varint_end(data: bytes | bytearray, at: int) -> int:
    """Return the end of a number of up to 32 bits, 0 if it is not complete."""
    for i in range(at, min(at + 5, len(data))):
        if data[i] < _MORE:
            return i + 1
    if len(data) >= at + 5:
        raise MalformedError("a number in the header is too long")
    return 0
