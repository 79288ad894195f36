"""Storage descriptors that follow each other in a message and differ only in their location are decoded once.

A request for 10,000 partitions has as many descriptors, which are most of its bytes and of its objects. Each is
compared, as bytes, with the last that was decoded; if only the location differs, it shares the rest with that. The
content of a request's descriptor must never be changed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from thrift.protocol import fastbinary

from metastore.thrift_gen.hive_metastore.ttypes import StorageDescriptor
from metastore.thrift_server.wire.codec import SKIP, MessageSource, Nothing

_SPEC = [StorageDescriptor, StorageDescriptor.thrift_spec]
_LENGTH = 4
_EMPTY_TEXT_AND_END = _LENGTH + 1
_REST = [entry[2] for entry in StorageDescriptor.thrift_spec if entry and entry[2] not in {"cols", "location"}]


class _KnownDescriptor(NamedTuple):
    """A decoded descriptor: its bytes before and behind the text of its location, and its content."""

    before: bytes
    behind: bytes
    cols: Any
    rest: Sequence[Any]


class SharedDescriptors:
    """The descriptors of one message in the binary protocol; in another protocol none are shared."""

    def __init__(self, source: MessageSource | None = None) -> None:
        """Prepare for a message. ``source``: the decoder's bytes, and its position."""
        self._buffer = source.cstringio_buf if source else None
        self._data: bytes = self._buffer.getvalue() if self._buffer else b""
        self._begun: tuple[StorageDescriptor, int] | None = None
        self._known: _KnownDescriptor | None = None

    def begin(self, sd: StorageDescriptor) -> None:
        """Fill a descriptor that begins at the decoder's position, if it is known; else the decoder does."""
        if self._buffer is None:
            return
        if self._begun is not None:
            self._known = self._learned(*self._begun)
        at = self._buffer.tell()
        self._begun = None if self._filled(sd, at) else (sd, at)

    def _learned(self, sd: StorageDescriptor, at: int) -> _KnownDescriptor | None:
        before = fastbinary.encode_binary(StorageDescriptor(sd.cols, ""), _SPEC)[:-_EMPTY_TEXT_AND_END]
        if sd.location is None or not self._data.startswith(before, at):
            return None  # Its sender writes fields in another order.
        source = MessageSource(self._data, at)
        fastbinary.decode_binary(Nothing(), source, SKIP)
        _, ends = self._text(at + len(before))
        behind = self._data[ends : source.cstringio_buf.tell()]
        return _KnownDescriptor(before, behind, sd.cols, [getattr(sd, name) for name in _REST])

    def _text(self, at: int) -> tuple[bytes, int]:
        """Return the text whose length stands at ``at``, and its end."""
        begins = at + _LENGTH
        ends = begins + int.from_bytes(self._data[at:begins])
        return self._data[begins:ends], ends

    def _filled(self, sd: StorageDescriptor, at: int) -> bool:
        known = self._known
        if known is None or self._buffer is None or not self._data.startswith(known.before, at):
            return False
        location, ends = self._text(at + len(known.before))
        if not self._data.startswith(known.behind, ends):
            return False
        self._buffer.seek(ends + len(known.behind) - 1)  # The decoder reads the end of the struct.
        sd.cols, sd.location = known.cols, location.decode(errors="replace")
        for name, value in zip(_REST, known.rest, strict=True):
            setattr(sd, name, value)
        return True
