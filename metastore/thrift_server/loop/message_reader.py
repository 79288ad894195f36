"""A reader that turns the bytes of a connection into decoded messages.

Rule: most messages are small, arrive whole and are decoded at once; any other is scanned for its end, and a message
that is larger than a piece is left as bytes, to be decoded elsewhere (`Messages.decoded`). No message is decoded beyond
the limits, and a message that its method's decoder refuses leaves the next where it begins.
"""

import gc
from typing import Protocol

from metastore.config import ServerSettings
from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.object_bounds import StructCounter
from metastore.thrift_server.wire.protocol import ArgumentsCodec, Header, Message, WireProtocol
from metastore.thrift_server.wire.scanner import MalformedError

PIECE = 1 << 14
"""Bytes read at once; a message within one piece is decoded on the event loop, and without looking for its end first.
The worst that fits into it, empty structs, takes 12 ms."""
_LENGTH_BYTES = 4


class Routes(Protocol):
    """The routes of methods: here or upstream."""

    def forwards(self, method: str) -> bool:
        """Return True if calls of the method go to the upstream as they are."""

    def keeps(self, method: str) -> bool:
        """Return True if calls of the method are needed as bytes, for the upstream."""


class AllHere:
    """The routes without an upstream."""

    def forwards(self, method: str) -> bool:  # noqa: ARG002 - the protocol's
        """Return False: no method is forwarded."""
        return False

    keeps = forwards


ALL_HERE = AllHere()


class Messages:
    """A reader that takes messages off the front of a connection's received bytes."""

    def __init__(self, protocol: WireProtocol, settings: ServerSettings, routes: Routes = ALL_HERE) -> None:
        """Prepare a reader. ``routes``: methods whose bytes are kept, and those that are not even decoded."""
        # These are the codecs of methods that are answered here; the arguments of all others are skipped.
        self._codecs: dict[str, ArgumentsCodec] = {
            method: codec for method, codec in CODECS.items() if not routes.forwards(method)
        }
        self._keeps = routes.keeps
        self._protocol, self._limit = protocol, settings.max_message_size
        self._most, self._framing = settings.max_message_objects, settings.framed
        self._counted = StructCounter(settings.max_message_objects)
        self.next = self._framed if settings.framed else self._unframed
        """A function that takes the next message of a connection, None if it is incomplete. Raises: MalformedError."""

    def _framed(self, connection: ClientConnection) -> Message | None:
        """Take a message with its length in front."""
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
        if length > PIECE:
            return Message(header, data=frame)
        if not self._protocol.scanner(header.end, length, self._most).advance(frame):
            raise MalformedError("a frame ends before its message does")
        return self._decoded(header, frame, self._codecs.get(header.method))

    def _unframed(self, connection: ClientConnection) -> Message | None:
        """Take a message whose end only its structure shows."""
        received = connection.received
        if connection.scanner is None or connection.header is None:
            header = self._protocol.header(received, 0)
            if header is None:
                return None
            try:
                codec = self._codecs.get(header.method)
                arguments, end = self._protocol.decode(codec, bytes(received[:PIECE]), header.end)
            except Exception:  # noqa: BLE001, S110 - incomplete or wrong: the scanner tells which
                pass
            else:
                connection.received = bytes(received[end:]) if end < len(received) else b""
                raw = bytes(received[:end]) if self._keeps(header.method) else None
                return Message(header, arguments, "", None, raw)
            connection.header = header
            connection.scanner = self._protocol.scanner(header.end, self._limit, self._most)
        if not connection.scanner.advance(received):
            return None
        header, end = connection.header, connection.scanner.at
        connection.scanner = connection.header = None
        connection.received = bytes(received[end:])
        data = bytes(memoryview(received)[:end])
        if end > PIECE:
            return Message(header, data=data)
        return self._decoded(header, data, self._codecs.get(header.method))

    def decoded(self, header: Header, data: bytes) -> Message:
        """Decode a large message. Only one thread may call this at a time."""
        if self._framing:
            try:
                if not self._protocol.scanner(header.end, len(data), self._most).advance(data):
                    raise MalformedError("a frame ends before its message does")  # noqa: TRY301
            except MalformedError as error:
                return Message(header, complaint=f"{header.method}: {error}")
        codec = CODECS.get(header.method)
        try:
            return self._decoded(header, data, self._counted.codec(codec) if codec is not None else None)
        finally:
            self._counted.forget()

    def _decoded(self, header: Header, data: bytes, codec: ArgumentsCodec | None) -> Message:
        """Decode a complete message, without the garbage collector, which doubles the time of a large message."""
        collecting = gc.isenabled()
        gc.disable()
        raw = data if self._keeps(header.method) else None
        try:
            return Message(header, self._protocol.decode(codec, data, header.end)[0], raw=raw)
        except Exception as error:  # noqa: BLE001 - whatever the decoder says, only this call fails
            return Message(header, complaint=f"{header.method}: {error}", raw=raw)
        finally:
            if collecting:
                gc.enable()
