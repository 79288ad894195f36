"""SASL in Thrift's framing: the messages of a negotiation, and the mechanisms that a server offers.

Rule: nothing of a client is used before its mechanism has proved who it is, and each message is bounded. Sources:
Thrift's doc/specs/thrift-sasl-spec.txt, RFC 4422.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol

from metastore.errors import AccessDeniedError
from metastore.thrift_server.auth.identity import NOBODY, Identity

HEADER = 5
"""Bytes: a status and the length of the payload."""
LARGEST_PAYLOAD = 1 << 17
"""Bytes; a Kerberos ticket with the groups of a directory may have 64 KiB."""
MOST_MESSAGES = 10


class NegotiationStatus(IntEnum):
    """The status byte of a message."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


class Mechanism(Protocol):
    """One side of a negotiation: the server's."""

    identity: Identity | None
    """The proven identity, once the negotiation is complete."""

    @property
    def waits(self) -> bool:
        """True if the next step may wait for a database or a directory server."""

    @property
    def protects(self) -> bool:
        """True if the frames that follow are wrapped."""

    def step(self, response: bytes) -> bytes:
        """Take the client's response, and return the next challenge. Raises: AccessDeniedError."""

    def wrap(self, data: bytes) -> bytes:
        """Protect the content of a frame."""

    def unwrap(self, data: bytes) -> bytes:
        """Return the content of a protected frame. Raises: ConnectionError (it was changed on the way)."""


Mechanisms = Mapping[str, Callable[[str], Mechanism]]
"""The mechanisms that a server offers, by name; each negotiation makes one of its own for the client's address."""


class Unprotected:
    """The part of a mechanism whose frames are not wrapped."""

    identity: Identity | None = None
    protects = False

    def wrap(self, data: bytes) -> bytes:
        """Return the data as it is."""
        return data

    def unwrap(self, data: bytes) -> bytes:
        """Return the data as it is."""
        return data


class NegotiationMessage(NamedTuple):
    """A message with its status."""

    status: int
    payload: bytes

    def encoded(self) -> bytes:
        """Return the bytes for the wire."""
        return bytes((self.status,)) + len(self.payload).to_bytes(4, "big") + self.payload


def next_message(received: bytearray) -> NegotiationMessage | None:
    """Take the next complete message off the received bytes; None: there is none yet. Raises: AccessDeniedError."""
    if len(received) < HEADER:
        return None
    size = int.from_bytes(received[1:HEADER], "big")
    if size > LARGEST_PAYLOAD:
        raise AccessDeniedError(f"A SASL message of {size} bytes is refused: {LARGEST_PAYLOAD} are enough")
    if len(received) < HEADER + size:
        return None
    message = NegotiationMessage(received[0], bytes(received[HEADER : HEADER + size]))
    del received[: HEADER + size]
    return message


class Negotiation:
    """A negotiation with one client."""

    def __init__(self, mechanisms: Mechanisms, host: str) -> None:
        """Begin with a client at an address: it says first which mechanism it wants."""
        self._mechanisms, self._host = mechanisms, host
        self.mechanism: Mechanism | None = None
        self._messages = 0

    @property
    def waits(self) -> bool:
        """True if the next step may wait for another system."""
        return self.mechanism is not None and self.mechanism.waits

    @property
    def identity(self) -> Identity:
        """The proven identity; `NOBODY` before the end."""
        return (self.mechanism.identity if self.mechanism is not None else None) or NOBODY

    @property
    def is_complete(self) -> bool:
        """True once the client is known."""
        return self.mechanism is not None and self.mechanism.identity is not None

    def answer(self, message: NegotiationMessage) -> bytes:
        """Return the answer to a message, as bytes; b"" for none. Raises: AccessDeniedError (`refusal` tells it)."""
        self._messages += 1
        if self._messages > MOST_MESSAGES:
            raise AccessDeniedError("The negotiation has too many messages")
        if self.mechanism is None:
            if message.status != NegotiationStatus.START:
                raise AccessDeniedError(f"A negotiation begins with START (1), not with {message.status}")
            self.mechanism = self._of(message.payload)
            return b""
        if message.status not in {NegotiationStatus.OK, NegotiationStatus.COMPLETE}:
            raise AccessDeniedError(f"The client ended the negotiation: {message.payload[:200]!r}")
        challenge = self.mechanism.step(message.payload)
        status = NegotiationStatus.COMPLETE if self.is_complete else NegotiationStatus.OK
        return NegotiationMessage(status, challenge).encoded()

    def _of(self, name: bytes) -> Mechanism:
        wanted = name.decode("ascii", "replace")
        if wanted not in self._mechanisms:
            offered = ", ".join(self._mechanisms) or "none"
            raise AccessDeniedError(f"The mechanism {wanted[:40]!r} is not offered here; offered: {offered}")
        return self._mechanisms[wanted](self._host)


def refusal(reason: str) -> bytes:
    """Return the message that ends a negotiation; the client shows the reason."""
    return NegotiationMessage(NegotiationStatus.ERROR, reason.encode()).encoded()
