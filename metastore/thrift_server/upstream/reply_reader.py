"""A reader of an upstream's answer on its way to the client: it finds its end, and its outcome.

Rule: no byte is changed and, beyond the first few, none is kept: scanned bytes are passed on. The structure of the
message is followed only if the framing does not show the end.
"""

from typing import Protocol

from thrift.Thrift import TMessageType, TType

from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import CompactProtocol, Header, WireProtocol
from metastore.thrift_server.wire.scanner import MalformedError, Scanner

WHOLE = 1 << 16
"""The size up to which an answer that has all arrived is skipped at once, which is quickest."""
_LENGTH_BYTES = 4
_UNLIMITED = 1 << 62


class Reply(Protocol):
    """One answer."""

    @property
    def outcome(self) -> str:
        """The outcome: ``ok``, the exception that it carries, or "" while it is not known."""

    def take(self, data: bytes) -> bool:
        """Scan received bytes; return True if the answer is complete with them. Raises: MalformedError."""


class _ReplyOutcome:
    """A reader of the beginning of a message."""

    def __init__(self, protocol: WireProtocol, method: str) -> None:
        self._protocol, self._method = protocol, method
        self.header: Header | None = None
        self.outcome = ""

    def look(self, data: bytes | bytearray) -> None:
        """Scan a message from its first byte on. Raises: MalformedError."""
        if self.outcome:
            return
        header = self.header = self._protocol.header(data, 0)
        if header is None or not (len(data) >= header.end + 3 or data[header.end :] == b"\0"):
            return
        if header.message_type == TMessageType.EXCEPTION:
            self.outcome = "APPLICATION_EXCEPTION"
        elif header.message_type != TMessageType.REPLY:
            raise MalformedError(f"a message of type {header.message_type} is not an answer")
        else:
            self.outcome = self._named(self._field(data, header.end))

    def _field(self, data: bytes | bytearray, at: int) -> int:
        """Return the number of the first field, 0 if there is none: 0 is the result, the others are exceptions."""
        if data[at] == TType.STOP:
            return 0
        if isinstance(self._protocol, CompactProtocol):
            return data[at] >> 4
        return int.from_bytes(data[at + 1 : at + 3], signed=True)

    def _named(self, field: int) -> str:
        if field == 0:
            return "ok"
        codec = CODECS.get(self._method)
        for exception, (_, entries) in codec.exceptions.items() if codec is not None else ():
            if any(entry[0] == field for entry in entries):
                return exception.__name__
        return "EXCEPTION"


class UnframedReply:
    """A reply whose end only its structure shows."""

    def __init__(self, protocol: WireProtocol, method: str, limit: int) -> None:
        self._protocol, self._limit = protocol, limit
        self._outcome = _ReplyOutcome(protocol, method)
        self._data = bytearray()
        self._scanner: Scanner | None = None
        self._size = 0

    @property
    def outcome(self) -> str:
        """The outcome: see `Reply`."""
        return self._outcome.outcome

    def take(self, data: bytes) -> bool:
        """Scan received bytes: see `Reply`."""
        self._size += len(data)
        if self._size > self._limit:
            raise MalformedError(f"the answer has more than {self._limit} bytes (metastore.upstream.max.reply.size)")
        self._data += data
        self._outcome.look(self._data)
        header = self._outcome.header
        if header is None or not self._outcome.outcome:
            return False
        if self._scanner is None:
            if len(self._data) <= WHOLE:
                try:
                    _, end = self._protocol.decode(None, bytes(self._data), header.end)
                except Exception:  # noqa: BLE001, S110 - incomplete or wrong: the scanner tells which
                    pass
                else:
                    return self._ended(end)
            self._scanner = self._protocol.scanner(header.end, _UNLIMITED, _UNLIMITED)
        scanner = self._scanner
        if scanner.advance(self._data):
            return self._ended(scanner.at)
        looked_at = min(scanner.at, len(self._data))
        del self._data[:looked_at]
        scanner.forget(looked_at)
        return False

    def _ended(self, end: int) -> bool:
        if end != len(self._data):
            raise MalformedError("the answer is followed by bytes that nobody asked for")
        return True


class FramedReply:
    """A reply with its length in front."""

    def __init__(self, protocol: WireProtocol, method: str, limit: int) -> None:
        self._limit = limit
        self._outcome = _ReplyOutcome(protocol, method)
        self._begin = bytearray()
        self._size = 0
        self._length: int | None = None

    @property
    def outcome(self) -> str:
        """The outcome: see `Reply`."""
        return self._outcome.outcome

    def take(self, data: bytes) -> bool:
        """Scan received bytes: see `Reply`."""
        self._size += len(data)
        if not self._outcome.outcome:
            self._begin += data
            if len(self._begin) < _LENGTH_BYTES:
                return False
            self._length = int.from_bytes(self._begin[:_LENGTH_BYTES], signed=True) + _LENGTH_BYTES
            if not _LENGTH_BYTES < self._length <= self._limit:
                raise MalformedError(
                    f"a frame of {self._length - _LENGTH_BYTES} bytes is not acceptable "
                    "(metastore.upstream.max.reply.size)"
                )
            self._outcome.look(self._begin[_LENGTH_BYTES:])
        if self._length is None or self._size < self._length:
            return False
        if self._size > self._length or not self._outcome.outcome:
            raise MalformedError("the frame does not hold one answer")
        return True
