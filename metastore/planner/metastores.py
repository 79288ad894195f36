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
from metastore.client.lock_plan import LockModes, lock_modes

_HOLDS_S = 60.0


class ClientSettings(NamedTuple):
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
        self._reading = threading.Lock()
        self._settings: tuple[float, ClientSettings] | None = None

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

    def settings(self, client: DomainClient) -> ClientSettings:
        """The settings, read from the metastore once a minute. Raises: MetastoreUnreachableError."""
        with self._reading:
            if self._settings is None or monotonic() - self._settings[0] > _HOLDS_S:
                modes = lock_modes(lambda key, default: str(client.get_config_value(key, default)))
                self._settings = (monotonic(), ClientSettings(txn_timeout(client), modes))
            return self._settings[1]

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()
