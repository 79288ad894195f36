"""Connections to the metastore: each call borrows a connection of its own."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import NamedTuple

from metastore.client import DomainClient
from metastore.client.heartbeat import txn_timeout
from metastore.client.lock_plan import LockModes, told_modes

_HOLDS_S = 60.0


class Told(NamedTuple):
    """The metastore's settings for clients."""

    timeout: timedelta
    """A transaction without heartbeats for so long is ended."""
    modes: LockModes


class Metastores:
    """Clients of a metastore, which may have several servers."""

    def __init__(self, uri: str | None) -> None:
        """Raises: ValueError (the address), InvalidInputError (key or trust store)."""
        self._first = DomainClient(uri, timeout_s=120.0)
        self.uri = self._first.uri
        self._idle: deque[DomainClient] = deque([self._first])
        self._asking = threading.Lock()
        self._told: tuple[float, Told] | None = None

    @contextmanager
    def lent(self) -> Iterator[DomainClient]:
        """A client that nobody else uses inside the block. After a broken connection it reconnects by itself."""
        try:
            client = self._idle.pop()
        except IndexError:
            client = self._first.clone()
        try:
            yield client
        finally:
            self._idle.append(client)

    def told(self, client: DomainClient) -> Told:
        """The settings, read from the metastore once a minute. Raises: MetastoreUnreachableError."""
        with self._asking:
            if self._told is None or monotonic() - self._told[0] > _HOLDS_S:
                modes = told_modes(lambda key, default: str(client.get_config_value(key, default)))
                self._told = (monotonic(), Told(txn_timeout(client), modes))
            return self._told[1]

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()
