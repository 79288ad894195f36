"""One call of one client, as its handler sees it, and how a handler asks to be run.

Rule: a handler touches the connection only through `Call`. Three ways to run:

- plain: on a thread of the bounded pool, may block on PostgreSQL or files;
- `@immediate`: on the event loop itself; must not block, read a file or take a lock;
- `@coalesced(lane)`: many calls in one go (group commit). While one batch of a lane is in PostgreSQL, later calls of
  the lane gather; each caller is answered after its own effect is durable.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Connection(Protocol):
    """What a handler may know about the client's connection."""

    peer: str
    """Address of the client, ``host:port``."""
    user: str | None
    """Set by set_ugi; not proven."""
    groups: tuple[str, ...]
    metaconf: dict[str, str] | None
    """What setMetaConf changed."""
    closed: bool
    """True once the client is gone: an answer would not arrive."""


class Call:
    """A method with its decoded arguments."""

    __slots__ = ("args", "connection", "context", "expected", "method", "outcome", "reply", "seqid", "started")

    def __init__(
        self, method: str, args: tuple[Any, ...], connection: Connection, seqid: bytes = b"", started: float = 0.0
    ) -> None:
        """``seqid`` is the message's sequence id as received, and goes back unchanged; ``started`` a perf_counter."""
        self.method = method
        self.args = args
        self.connection = connection
        self.seqid = seqid
        self.started = started
        self.expected = True  # a reply: not of a oneway message
        self.outcome = ""
        self.reply = b""
        self.context: dict[str, object] | None = None

    def log(self, **fields: object) -> None:
        """Add fields (ids, names) to this call's log line, which is written when the call is slow or fails."""
        if self.context is None:
            self.context = fields
        else:
            self.context.update(fields)

    def __repr__(self) -> str:
        """For failing tests."""
        return f"Call({self.method}{self.args!r})"


def coalesced(lane: str, most: int = 1000) -> Callable[[Handler], Handler]:
    """Run this handler on the lane's own thread, with all calls that gathered meanwhile (up to ``most``).

    The method's signature is ``(self, calls: list[Call]) -> list[result | Exception]``, one item for each call, in
    order. Arguments are in ``call.args``. If it raises, every call is run again alone, so that one bad call hurts
    nobody else; not after an UnavailableError or an OutcomeUnknownError, which every caller is told.
    """

    def mark(handler: Handler) -> Handler:
        handler.__coalesced__ = (lane, most)  # type: ignore[attr-defined]
        return handler

    return mark


def immediate(handler: Handler) -> Handler:
    """Run this handler on the event loop: for answers that need no database, no file and no lock."""
    handler.__immediate__ = True  # type: ignore[attr-defined]
    return handler


def refused(reason: str) -> Callable[[Handler], Handler]:
    """Mark a handler that never does what it is asked, on purpose; the reason goes into the documentation."""

    def mark(handler: Handler) -> Handler:
        handler.__refused__ = reason  # type: ignore[attr-defined]
        return handler

    return mark
