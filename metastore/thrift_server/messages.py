"""From the bytes of a connection to decoded messages.

Rule: most messages arrive whole and are decoded at once; only one that does not is looked through for its end. Nothing
is decoded beyond the size limit, and a message that its method's decoder refuses leaves the next one where it begins.
"""

import gc
from typing import Any, NamedTuple

from metastore.config import ServerSettings
from metastore.thrift_server.codec import CODECS
from metastore.thrift_server.connection import ClientConnection
from metastore.thrift_server.protocol import Header, WireProtocol
from metastore.thrift_server.scanner import MalformedError

PIECE = 1 << 16
"""Bytes read at once; a message within one piece is decoded without looking for its end first."""
_LENGTH_BYTES = 4


class Message(NamedTuple):
    """A message with its decoded arguments, or with what the decoder has against it."""

    header: Header
    arguments: Any = None
    complaint: str = ""


class Messages:
    """Takes messages off the front of what a connection has received."""

    def __init__(self, protocol: WireProtocol, settings: ServerSettings) -> None:
        self._protocol, self._limit = protocol, settings.max_message_size
        self.next = self._framed if settings.framed else self._unframed
        """The next message of a connection, None when it is not complete. Raises: MalformedError."""

    def _framed(self, connection: ClientConnection) -> Message | None:
        """Each message has its length in front."""
        received = connection.received
        if len(received) < _LENGTH_BYTES:
            return None
        length = int.from_bytes(received[:_LENGTH_BYTES], signed=True)
        if not 0 < length <= self._limit:
            raise MalformedError(f"a frame of {length} bytes is not acceptable, at most {self._limit}")
        end = _LENGTH_BYTES + length
        if len(received) < end:
            return None
        frame = bytes(received[_LENGTH_BYTES:end])
        connection.received = received[end:]
        header = self._protocol.header(frame, 0)
        if header is None:
            raise MalformedError("a frame is too short for a message")
        if not self._protocol.scanner(header.end, length).advance(frame):
            raise MalformedError("a frame ends before its message does")
        return self._decoded(header, frame)

    def _unframed(self, connection: ClientConnection) -> Message | None:
        """Only the structure of a message says where it ends."""
        received = connection.received
        if connection.scanner is None or connection.header is None:
            header = self._protocol.header(received, 0)
            if header is None:
                return None
            if len(received) <= PIECE:
                data = bytes(received)
                try:
                    arguments, end = self._protocol.decode(CODECS.get(header.method), data, header.end)
                except Exception:  # noqa: BLE001, S110 - incomplete or wrong: the scanner tells which
                    pass
                else:
                    connection.received = data[end:]
                    return Message(header, arguments)
            connection.header = header
            connection.scanner = self._protocol.scanner(header.end, self._limit)
        if not connection.scanner.advance(received):
            return None
        header, end = connection.header, connection.scanner.at
        connection.scanner = connection.header = None
        connection.received = bytes(received[end:])
        return self._decoded(header, bytes(memoryview(received)[:end]))

    def _decoded(self, header: Header, data: bytes) -> Message:
        """A complete message, decoded. Without the garbage collector, which doubles the time of a large one."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            return Message(header, self._protocol.decode(CODECS.get(header.method), data, header.end)[0])
        except Exception as error:  # noqa: BLE001 - whatever the decoder says, only this call fails
            return Message(header, complaint=f"{header.method}: {error}")
        finally:
            if collecting:
                gc.enable()
