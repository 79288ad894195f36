"""Connections to PostgreSQL: how they begin, and how silence ends them.

Rules: a host that vanishes without a word is noticed in less than half a minute, whatever is going on. Names are looked
up on threads, since the resolver may take as long as it likes: the caller waits for that as for PostgreSQL, which in a
fiber blocks no other. Every address of a name, and every host of the URL, is tried, each with its own time.
"""

import ipaddress
import os
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg2
from psycopg2.extensions import POLL_OK, POLL_READ, connection

from metastore.db.fibers import until, wait
from metastore.errors import UnavailableError

SILENCE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""Of libpq, where the URL says nothing else: keepalives end an idle silence, the other setting unanswered data."""


def connect(parameters: Mapping[str, Any], seconds: float) -> connection:
    """Return an asynchronous connection that is ready; ``seconds``: for a look-up, and for each address.

    Raises: UnavailableError.
    """
    failure: Exception | None = None
    try:
        for place in _places(parameters, seconds):
            try:
                return _connected({**parameters, **place}, seconds)
            except (psycopg2.Error, TimeoutError) as error:
                failure = error
    except OSError as error:  # The name is unknown, the resolver does not answer, or no descriptors are left.
        failure = failure or error
    raise UnavailableError(
        f"The metastore's database does not answer, nothing was changed, try again: {why(failure)}"
    ) from failure


def why(failure: Exception | None) -> str:
    """Explain a failed connection: the driver's message, and a hint if the message only says that it failed."""
    said = str(failure).strip().splitlines()[0]
    if "certificate verify failed" not in said:
        return said
    return f"{said}: PostgreSQL's certificate is not signed by what the file of sslrootcert holds, or it has expired."


def ask(raw: connection, query: str, parameters: Any = None, seconds: float | None = None) -> list[tuple[Any, ...]]:
    """Return one answer on an asynchronous connection. Raises: psycopg2.Error, TimeoutError."""
    cursor = raw.cursor()
    cursor.execute(query, parameters)
    wait(raw, seconds)
    rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
    cursor.close()
    return rows


def _connected(parameters: Mapping[str, Any], seconds: float) -> connection:
    deadline = time.monotonic() + seconds
    raw = psycopg2.connect(**parameters, async_=True)
    try:
        while (state := raw.poll()) != POLL_OK:
            until(
                raw.fileno(),
                select.POLLIN if state == POLL_READ else select.POLLOUT,
                max(0.001, deadline - time.monotonic()),
            )
    except BaseException:
        raw.close()
        raise
    return raw


def _places(parameters: Mapping[str, Any], seconds: float) -> Iterator[dict[str, str]]:
    """Yield parameters for each single address, in the order in which to try them."""
    hosts = str(parameters.get("host") or os.environ.get("PGHOST", "")).split(",")
    if parameters.get("hostaddr") or hosts == [""]:
        yield {}
        return
    ports = str(parameters.get("port") or os.environ.get("PGPORT", "5432")).split(",")
    for number, host in enumerate(hosts):
        place = {"host": host, "port": ports[number] if len(ports) == len(hosts) else ports[0]}
        if not host or host[0] in "/@" or _is_address(host):
            yield place
            continue
        for address in _addresses(host, seconds):
            yield {**place, "hostaddr": address}


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _LookUp:
    """A question to the resolver and its waiters: the other ends of sockets that close with it."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.answer: list[str] | OSError = []
        self.askers: list[socket.socket] = []

    def run(self) -> None:
        try:
            addresses = socket.getaddrinfo(self.host, None, type=socket.SOCK_STREAM)
            self.answer = list(dict.fromkeys(str(address[0]) for *_, address in addresses))
        except OSError as error:
            self.answer = error
        with _asking:
            del _look_ups[self.host]
            for asker in self.askers:
                asker.close()


_asking = threading.Lock()
_look_ups: dict[str, _LookUp] = {}
"""Those that run: a resolver that hangs holds one thread for each name, however often it is asked."""


def _addresses(host: str, seconds: float) -> list[str]:
    """Resolve a name to addresses. Raises: OSError (which includes TimeoutError)."""
    mine, its = socket.socketpair()
    with mine:
        with _asking:
            look_up = _look_ups.get(host)
            if look_up is None:
                look_up = _look_ups[host] = _LookUp(host)
                threading.Thread(target=look_up.run, name=f"look-up of {host}", daemon=True).start()
            look_up.askers.append(its)
        try:
            until(mine.fileno(), select.POLLIN, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"the name {host} was not resolved within {seconds:g} s") from error
    if isinstance(look_up.answer, OSError):
        raise OSError(f"the name {host} cannot be resolved: {look_up.answer.strerror}")
    return look_up.answer
