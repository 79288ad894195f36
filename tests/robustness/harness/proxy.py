"""A TCP proxy that cuts connections in the middle of a request or of an answer, or swallows the answer.

Or it lets go of the clients alone: the server goes on with what it was asked, and does not learn that nobody listens.
"""

import selectors
import socket
import threading
from contextlib import suppress
from random import Random
from typing import NamedTuple


class Leg(NamedTuple):
    """One direction of one connection."""

    source: socket.socket
    target: socket.socket
    is_answer: bool


class Proxy:
    """Forwards one port to another; while ``harm`` is above 0, each piece of traffic is cut with that probability."""

    def __init__(self, target_port: int, rng: Random) -> None:
        self.target_port, self.harm, self.cuts = target_port, 0.0, 0
        self._rng = rng
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._stopping = threading.Event()
        self._parting = threading.Event()
        self._parted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run, name=f"proxy to {target_port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.forget()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def part(self) -> None:
        """Cut all clients off, and keep the connections to the server until ``forget``."""
        self._parting.set()

    def forget(self) -> None:
        """Close what was kept."""
        while self._parted:
            self._parted.pop().close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._parting.is_set():
                self._part()
            for key, _ in self._selector.select(0.1):
                if key.data is None:
                    self._accept()
                elif key.fileobj.fileno() >= 0:
                    self._forward(key.data)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.target_port), timeout=2)
        except OSError:
            client.close()
            return
        for one, other, is_answer in ((client, server, False), (server, client, True)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.settimeout(5)
            self._selector.register(one, selectors.EVENT_READ, Leg(one, other, is_answer))

    def _forward(self, leg: Leg) -> None:
        try:
            data = leg.source.recv(65536)
            if not data:
                self._cut(leg)
            elif self.harm and self._rng.random() < self.harm:
                self.cuts += 1
                # A request may arrive whole, half or not; of an answer at most a part arrives.
                arrives = self._rng.choice((0, len(data) // 2) if leg.is_answer else (0, len(data) // 2, len(data)))
                leg.target.sendall(data[:arrives])
                self._cut(leg)
            else:
                leg.target.sendall(data)
        except OSError:
            self._cut(leg)

    def _part(self) -> None:
        self._parting.clear()
        for leg in [key.data for key in self._selector.get_map().values() if key.data is not None]:
            if not leg.is_answer:
                self.cuts += 1
                self._selector.unregister(leg.source)
                self._selector.unregister(leg.target)
                leg.source.close()
                self._parted.append(leg.target)

    def _cut(self, leg: Leg) -> None:
        for one in (leg.source, leg.target):
            with suppress(KeyError, ValueError):
                self._selector.unregister(one)
            one.close()
