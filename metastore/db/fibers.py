"""Waits for PostgreSQL: a thread blocks, a `Fiber` lets its event loop run meanwhile."""

import select

from greenlet import getcurrent, greenlet
from psycopg2.extensions import POLL_OK, POLL_READ, connection


class Fiber(greenlet):
    """A greenlet whose code runs in turns with others on one thread. Its work between two waits delays all of them."""

    def until(self, fd: int, mask: int, seconds: float | None) -> None:
        """Wait as the function of the same name does, and let other fibers run."""
        raise NotImplementedError


def in_fiber() -> bool:
    """Return True if the caller must not block its thread."""
    return isinstance(getcurrent(), Fiber)


def until(fd: int, mask: int, seconds: float | None = None) -> None:
    """Wait until the descriptor is ready for the ``mask`` of poll(). Raises: TimeoutError after ``seconds``."""
    here = getcurrent()
    if isinstance(here, Fiber):
        here.until(fd, mask, seconds)
        return
    poll = select.poll()
    poll.register(fd, mask)
    if not poll.poll(None if seconds is None else seconds * 1000):
        raise TimeoutError(f"no answer within {seconds:g} s")


def wait(raw: connection, seconds: float | None = None) -> None:
    """Wait until PostgreSQL has answered, on an asynchronous connection of psycopg2.

    Raises: psycopg2.Error; TimeoutError after ``seconds`` of silence.
    """
    while (state := raw.poll()) != POLL_OK:
        until(raw.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT, seconds)
