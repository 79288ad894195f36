"""A message of a client, decoded or still as bytes."""

from typing import Any, NamedTuple

from metastore.thrift_server.wire.protocol import Header


class Message(NamedTuple):
    """A message with its decoded arguments, or with what the decoder has against it, or still as bytes."""

    header: Header
    arguments: Any = None
    complaint: str = ""
    data: bytes | None = None
    """Of a large message: all of it."""
    raw: bytes | None = None
    """All of it, where its bytes go on to the upstream."""
