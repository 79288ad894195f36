"""A listener for messages of other processes through PostgreSQL: LISTEN on one channel.

Rule: messages sent while the connection is lost never arrive, so a user must not rely on the listener while it is not
connected. The connection is never pooled; it costs PostgreSQL nothing while no message is sent.
"""

from contextlib import suppress

import psycopg2
from psycopg2.extensions import connection

from metastore.db import network, sessions
from metastore.errors import UnavailableError

_SECONDS = 5.0


class Listener:
    """A subscription of one process to a channel. It is used by one thread."""

    def __init__(self, url: str, channel: str) -> None:
        """Prepare a listener; ``channel``: a plain identifier."""
        self._url, self._channel = url, channel
        self._session: connection | None = None

    @property
    def connected(self) -> bool:
        """True if messages sent now will arrive, as far as can be known."""
        return self._session is not None

    def connect(self) -> None:
        """Begin to listen; messages sent after the return arrive. Raises: UnavailableError."""
        self.close()
        session = network.connect(sessions.parameters(self._url, "metastore listener", {}), _SECONDS)
        try:
            network.ask(session, f"LISTEN {self._channel}", seconds=_SECONDS)
        except (psycopg2.Error, TimeoutError) as error:
            session.close()
            raise UnavailableError(f"cannot listen on {self._channel}: {error}") from error
        self._session = session

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a message arrives or the connection is lost."""
        return -1 if self._session is None else int(self._session.fileno())

    def heard(self) -> list[str]:
        """Return the payloads that have arrived. Raises: UnavailableError when the connection is lost."""
        if self._session is None:
            return []
        try:
            self._session.poll()
        except psycopg2.Error as error:
            self.close()
            raise UnavailableError(f"the connection that listens on {self._channel} was lost: {error}") from error
        payloads = [notify.payload for notify in self._session.notifies]
        self._session.notifies.clear()
        return payloads

    def close(self) -> None:
        """Stop listening."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(psycopg2.Error):
                session.close()
