"""Outcomes of connections over which lock requests without a transaction were made."""

from typing import NamedTuple


class Gone(NamedTuple):
    """A request whose client ended the connection to which it was tied."""

    lock_id: int
    looks: int
    """How often it was looked at (check_lock) over this connection."""
    at_once: bool
    """The connection carried nothing after the request, and ended right after the answer."""


class Left(NamedTuple):
    """Requests by the outcome of their connection. ``over``: requests about which a closed connection says nothing."""

    gone: list[Gone]
    here: set[int]
    over: set[int]
