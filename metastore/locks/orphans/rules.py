"""What became of the connections over which lock requests without a transaction were made."""

from typing import NamedTuple


class Gone(NamedTuple):
    """A request whose client ended the connection to which it was tied."""

    lock_id: int
    looks: int
    """How often it was looked at (check_lock) over this connection."""
    at_once: bool
    """The connection carried nothing after the request, and ended right after the answer."""


class Left(NamedTuple):
    """Requests by what became of their connection. ``over``: those of which it says nothing, though it is closed."""

    gone: list[Gone]
    here: set[int]
    over: set[int]
