"""Connections to the metastore: each call borrows a connection of its own."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import NamedTuple

from metastore.client import DomainClient
from metastore.client.client import ActingFor
from metastore.client.heartbeat import txn_timeout
from metastore.client.lock_plan import LockModes, lock_modes
from metastore.config import values
from metastore.file_work import SCHEMES
from metastore.roots import KEY, READABLE, Roots

_HOLDS_S = 60.0
_MOST_IDLE = 64
_READABLE = ("hive.metastore.warehouse.dir", "hive.metastore.warehouse.external.dir", KEY, READABLE)
_FILE = "file"


class MetastoreSettings(NamedTuple):
    """The metastore's settings for clients."""

    timeout: timedelta
    """The silence after which a transaction without heartbeats is ended."""
    modes: LockModes
    readable: Roots
    """The directories of tables' files that may be read."""
    schemes: Sequence[str]
    """The schemes of locations that may be opened."""


class Metastores:
    """A pool of clients of a metastore, which may have several servers."""

    def __init__(self, uri: str | None) -> None:
        """Prepare the pool. Raises: ValueError (the address), InvalidInputError (key or trust store)."""
        self._first = DomainClient(uri, timeout_s=120.0)
        self.uri = self._first.uri
        self._idle: deque[tuple[ActingFor, DomainClient]] = deque()
        self._lending, self._reading = threading.Lock(), threading.Lock()
        self._settings: tuple[float, MetastoreSettings] | None = None

    @contextmanager
    def lent(self, caller: ActingFor) -> Iterator[DomainClient]:
        """Lend a client that acts for the caller, and that no other call uses inside the block.

        After a broken connection it reconnects by itself, and names the caller again. Clients of other callers are kept
        for a while.
        """
        client = self._taken(caller)
        try:
            yield client
        finally:
            with self._lending:
                self._idle.append((caller, client))
                surplus = self._idle.popleft()[1] if len(self._idle) > _MOST_IDLE else None
            if surplus is not None:
                surplus.close()

    def _taken(self, caller: ActingFor) -> DomainClient:
        with self._lending:
            for kept in reversed(self._idle):
                if kept[0] == caller:
                    self._idle.remove(kept)
                    return kept[1]
        return self._first.clone(acting_for=caller)

    def settings(self, client: DomainClient) -> MetastoreSettings:
        """Return the settings, read from the metastore once a minute. Raises: MetastoreUnreachableError."""
        with self._reading:
            if self._settings is None or monotonic() - self._settings[0] > _HOLDS_S:

                def told(key: str, default: str = "") -> str:
                    return str(client.get_config_value(key, default))

                places = [place for key in _READABLE for place in values.WORDS.parse(told(key))]
                schemes = values.WORDS.parse(told(SCHEMES, _FILE))
                settings = MetastoreSettings(txn_timeout(client), lock_modes(told), Roots(tuple(places)), schemes)
                self._settings = (monotonic(), settings)
            return self._settings[1]

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop()[1].close()
        self._first.close()
