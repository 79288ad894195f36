"""One call of one client, as its handler sees it, and the ways to run a handler.

Rule: a handler touches the connection only through `Call`. Three ways to run:

- plain: on a thread of the bounded pool, may block on PostgreSQL or files;
- `@immediate`: on the event loop itself; must not block, read a file or take a lock;
- `@coalesced(lane)`: many calls at once (group commit), on the event loop: waits for PostgreSQL let others run, but
  nothing else may block. While a batch of a lane is in PostgreSQL, later calls of the lane gather; each caller is
  answered after its own effect is durable. A call that asks for a lot in few words (a range of ids) runs alone on a
  thread of the pool, as a call in a large message does.

A coalesced call that cannot be decided yet is parked: the handler answers `LATER` for it, keeps it, and sends it
through its lane again (`Call.again`) as soon as there is news, or answers it (`Call.answer`). A parked call holds no
thread.
"""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from metastore.thrift_server.auth.identity import Identity
from metastore.thrift_server.loop.address_limits import AddressLimits, Usage
from metastore.thrift_server.loop.client_session import Session

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Connection(Protocol):
    """The connection as a handler may use it."""

    peer: str
    """Address of the client, ``host:port``."""
    identity: Identity
    """The proven identity of the client."""
    user: str | None
    """The identity's user, or without proof the one of set_ugi."""
    groups: tuple[str, ...]
    metaconf: dict[str, str] | None
    """The settings that setMetaConf changed."""
    session: Session | None
    """The statements about the client that the upstream gets."""
    closed: bool
    """True once the client is gone: an answer would not arrive."""
    busy: bool
    """True if a call of it is in work."""
    calls: int
    """The number of calls that were begun."""
    left: float | None
    """The time (monotonic) when the client ended the connection without a farewell.

    None after a farewell, or if we ended it.
    """
    usage: Usage | None
    """The usage of its address; None: it is not limited."""
    hurry: Callable[[], None] | None
    """A function that the event loop calls to hurry a parked call: the client left, or the server stops."""

    @property
    def host(self) -> str:
        """The address of the client, without the port."""

    def act_for(self, caller: Identity, limits: AddressLimits | None, now: float) -> None:
        """Switch the connection's calls, and their limits, to a planner's caller from now on."""


class CallQueue(Protocol):
    """A queue of coalesced calls; its methods may run on any thread."""

    def put(self, call: "Call") -> None:
        """Queue a call for its turn."""

    def settle(self, call: "Call", result: object) -> None:
        """Answer a parked call with this result, without another turn."""


class Later:
    """The type of `LATER`."""


class PassedOn(NamedTuple):
    """The upstream's answer, whole, and its outcome, in place of a result."""

    reply: bytes
    outcome: str


LATER: Final = Later()
"""A stand-in for an answer: the call is parked."""


class Call:
    """A method with its decoded arguments."""

    # Fields that most calls leave alone are in the class: setting all of them took a tenth of the loop's time for a
    # call.
    expected = True
    """True if the client expects a reply: not for a oneway message."""
    outcome = ""
    reply: bytes | memoryview = b""
    cut_off = False
    """True if a part of the answer was sent, and the rest will never be."""
    raw = b""
    """The whole message, of a `shared` method."""
    context: dict[str, object] | None = None
    patient = True
    """False: any answer is wanted now."""
    effect: int | None = None
    """Id of what a coalesced handler made that must not stay if the answer cannot be sent. It gets the call again
    then, with ``lost`` set, to undo it; what it answers then is dropped."""
    lost = False
    large = False
    """True if its message was large, and others wait for their turn until it is answered."""
    lane: CallQueue | None = None
    """The lane of a coalesced call."""
    parked = 0.0
    """The seconds for which the call was parked."""
    _parked_at = 0.0

    def __init__(
        self, method: str, args: tuple[Any, ...], connection: Connection, seqid: bytes = b"", started: float = 0.0
    ) -> None:
        """Prepare a call.

        ``seqid`` is the message's sequence id, and goes back unchanged; ``started`` is a perf_counter.
        """
        self.method = method
        self.args = args
        self.connection = connection
        self.seqid = seqid
        self.started = started

    def log(self, **fields: object) -> None:
        """Add fields (ids, names) to this call's log line, which is written when the call is slow or fails."""
        if self.context is None:
            self.context = fields
        else:
            self.context.update(fields)

    def park(self, hurry: Callable[[], None]) -> None:
        """Park the call: the handler answers `LATER` for it. ``hurry`` must bring it to an end, once or twice."""
        self._parked_at = time.perf_counter()
        self.connection.hurry = hurry

    def again(self) -> None:
        """Send the call through its lane once more."""
        self._leave()
        if self.lane is not None:
            self.lane.put(self)

    def answer(self, result: object) -> None:
        """Answer the parked call with a result that another call has produced."""
        self._leave()
        if self.lane is not None:
            self.lane.settle(self, result)

    def _leave(self) -> None:
        """Record that the call is no longer parked."""
        if self._parked_at:
            self.parked += time.perf_counter() - self._parked_at
            self._parked_at = 0.0

    def __repr__(self) -> str:
        """Format the call, for failing tests."""
        return f"Call({self.method}{self.args!r})"


def coalesced(lane: str, apart: Callable[["Call"], bool] | None = None) -> Callable[[Handler], Handler]:
    """Run this handler with all calls of its lane that gathered meanwhile.

    ``apart``: returns True if a call would hold the event loop for long, by its arguments, quickly and without raising;
    the call then runs alone, on a thread.

    The method's signature is ``(self, calls: list[Call]) -> list[result | Exception]``, an item for each call, in
    order. Arguments are in ``call.args``. If it raises, every call is run again alone, so that a bad call affects no
    other; not after an UnavailableError or an OutcomeUnknownError, which every caller gets.
    """

    def mark(handler: Handler) -> Handler:
        handler.__coalesced__ = lane  # type: ignore[attr-defined]
        handler.__apart__ = apart  # type: ignore[attr-defined]
        return handler

    return mark


def immediate(handler: Handler) -> Handler:
    """Run this handler on the event loop: for answers that need no database, no file and no lock."""
    handler.__immediate__ = True  # type: ignore[attr-defined]
    return handler


def shared(handler: Handler) -> Handler:
    """Mark a handler whose call the upstream gets as well, as the bytes in ``call.raw`` (ADR 50)."""
    handler.__shared__ = True  # type: ignore[attr-defined]
    return handler


def refused(reason: str) -> Callable[[Handler], Handler]:
    """Mark a handler that refuses on purpose; the reason goes into the documentation."""

    def mark(handler: Handler) -> Handler:
        handler.__refused__ = reason  # type: ignore[attr-defined]
        return handler

    return mark
