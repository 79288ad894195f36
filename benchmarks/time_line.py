"""The time of a call of a single client, split: in the kernel, in our process, in PostgreSQL.

    python -m benchmarks.time_line [--calls 1000]

The server runs in a process of its own and records the times at which it passes a few points. Both processes use the
machine's clock, so the times can be compared with the client's. The table shows the mean of the quickest fifth of each
call, in microseconds.
"""

import argparse
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import wraps
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter_ns
from typing import Any
from urllib.parse import urlsplit

from benchmarks.counted_calls import World, allocation, exclusive, wish
from benchmarks.load import request, result
from benchmarks.peers import database
from benchmarks.transactions import own_postgres, settings
from metastore.app import App
from metastore.client import MetastoreClient
from metastore.client.domain_client import table_request
from metastore.config.settings import SettingsSource, build
from metastore.db.engine import _Lease
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.middleware import Middleware
from metastore.thrift_server.server import Server

Mark = tuple[str, int]
PARKED_S = 0.01
"""The seconds after which a waiting check is parked."""
COLUMNS = ("to the server", "read, decode", "hand-over", "ours", "PostgreSQL", "encode", "send, to the client", "whole")


def noting(marks: list[Mark], owner: type, name: str, before: str = "", after: str = "") -> None:
    """Record the beginning and the end of a method."""
    original = getattr(owner, name)

    @wraps(original)
    def noted(*args: Any, **more: Any) -> Any:
        if before:
            marks.append((before, perf_counter_ns()))
        try:
            return original(*args, **more)
        finally:
            if after:
                marks.append((after, perf_counter_ns()))

    setattr(owner, name, noted)


def serve(url: str, work: Path, pipe: Connection) -> None:
    """Run the server's process: send its address, then on each request the marks since the last one."""
    marks: list[Mark] = []
    noting(marks, Server, "_read", before="arrived")
    noting(marks, Middleware, "admit", after="decoded")
    noting(marks, Middleware, "run_batch", before="begun")
    noting(marks, Middleware, "run", before="begun")
    noting(marks, _Lease, "_send", before="asked", after="answered")
    noting(marks, Middleware, "finish", before="decided", after="encoded")
    given = {
        "metastore.database.url": url,
        "hive.metastore.thrift.bind.host": "127.0.0.1",
        "hive.metastore.port": "0",
        "metastore.http.port": "0",
        "hive.metastore.warehouse.dir": (work / "warehouse").as_uri(),
        "metastore.warehouse.roots": work.as_uri(),
    }
    app = App(build([SettingsSource("benchmark", given)]), loops=False)
    app.start()
    pipe.send(app.thrift_uri)
    while pipe.recv():
        pipe.send(marks[:])
        marks.clear()
    app.stop()


def calls(world: World, count: int) -> Iterator[tuple[str, Callable[[], tuple[Any, ...]]]]:
    """Yield each call's name, perhaps with more words behind it, and a function for its arguments."""
    [beaten] = world.begun()
    yield "heartbeat", lambda: (ttypes.HeartbeatRequest(txnid=beaten),)
    yield "get_open_txns", lambda: ()
    world.listed()
    wanted = ttypes.GetValidWriteIdsRequest(fullTableNames=["db.t"], validTxnList=world.snapshot())
    yield "get_valid_write_ids", lambda: (wanted,)
    yield "get_table_req", lambda: (table_request("lake", "plain"),)
    yield "open_txns", lambda: (ttypes.OpenTxnRequest(num_txns=1, user="ann", hostname="h1"),)
    empty, writing = iter(world.begun(count)), iter(world.begun(count))
    yield "commit_txn", lambda: (ttypes.CommitTxnRequest(txnid=next(empty)),)
    yield "allocate_table_write_ids", lambda: (allocation(next(writing)),)
    world.clear()

    def written() -> tuple[Any, ...]:
        [txn_id] = world.begun()
        world.client.allocate_table_write_ids(allocation(txn_id))
        world.client.lock(wish(txn_id, "p=1"))
        return (ttypes.CommitTxnRequest(txnid=txn_id),)

    yield "commit_txn of a writer", written
    held: list[int] = []

    def free() -> tuple[Any, ...]:
        while held:
            world.client.unlock(ttypes.UnlockRequest(lockid=held.pop()))
        held.extend(lock.lockid for lock in world.client.show_locks(ttypes.ShowLocksRequest()).locks)
        return free() if held else (exclusive(),)

    yield "lock", free
    free()
    yield "unlock", lambda: (ttypes.UnlockRequest(lockid=world.held()),)


def line(sent: int, marks: list[Mark], received: int) -> list[float] | None:
    """Return a call's microseconds by ``COLUMNS``; None if something else was recorded meanwhile."""
    at: dict[str, int] = {}
    postgres = 0
    for name, instant in marks:
        if sent <= instant <= received:
            postgres += (name == "answered") * instant - (name == "asked") * instant
            at.setdefault(name, instant)
    if not {"arrived", "decoded", "begun", "decided", "encoded"} <= at.keys():
        return None
    ours = at["decided"] - at["begun"] - postgres
    parts = (
        at["arrived"] - sent,
        at["decoded"] - at["arrived"],
        at["begun"] - at["decoded"],
        ours,
        postgres,
        at["encoded"] - at["decided"],
        received - at["encoded"],
        received - sent,
    )
    return [part / 1000 for part in parts]


def measured(
    pipe: Connection,
    sock: socket.socket,
    method: str,
    arguments: Callable[[], tuple[Any, ...]],
    count: int,
    next_up: socket.socket | None = None,
) -> list[float]:
    """Return the mean of the quickest fifth. ``next_up``: another client whose answer is waited for."""
    lines, called = [], method.split(maxsplit=1)[0]
    for _ in range(count):
        message = request(called, *arguments())
        pipe.send(True)  # noqa: FBT003 - go on
        pipe.recv()
        sent = perf_counter_ns()
        sock.sendall(message)
        reply = (next_up or sock).recv(1 << 18)
        received = perf_counter_ns()
        reply = reply if next_up is None else sock.recv(1 << 18)
        pipe.send(True)  # noqa: FBT003
        parts = line(sent, pipe.recv(), received)
        lines += [parts] if parts else []
        result(called, reply)
    quickest = sorted(lines, key=lambda parts: parts[-1])[: max(1, len(lines) // 5)]
    return [statistics.mean(column) for column in zip(*quickest, strict=True)]


def hand_over(pipe: Connection, sock: socket.socket, next_up: socket.socket, world: World, count: int) -> list[float]:
    """Return the mean of the quickest fifth, from a release to the answer of the check parked behind it."""

    def release() -> tuple[Any, ...]:
        world.clear()
        first, second = world.held(), world.held()
        next_up.sendall(request("check_lock", ttypes.CheckLockRequest(lockid=second)))
        time.sleep(PARKED_S)
        return (ttypes.UnlockRequest(lockid=first),)

    return measured(pipe, sock, "unlock", release, count, next_up)


def main() -> None:
    """Measure the parts of a call and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        server_url = own_postgres(work, running)
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(database(server_url, "bench_time_line"), work, theirs)
        )
        process.start()
        running.callback(process.join, 30)
        running.callback(ours.send, False)  # noqa: FBT003 - the end
        uri = urlsplit(ours.recv())
        sock, next_up = (
            running.enter_context(socket.create_connection((uri.hostname or "", uri.port or 0))) for _ in range(2)
        )
        for client_sock in (sock, next_up):
            client_sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(settings(server_url))
        print("| call | " + " | ".join(COLUMNS) + " |\n|---|" + "--:|" * len(COLUMNS))
        with MetastoreClient(uri.geturl()) as client:
            world = World(client)
            world.fill(work, many=0)
            for method, arguments in calls(world, options.calls):
                parts = measured(ours, sock, method, arguments, options.calls)
                print(f"| {method} | " + " | ".join(f"{part:.0f}" for part in parts) + " |", flush=True)
            parts = hand_over(ours, sock, next_up, world, options.calls // 3)
            print("| unlock, to the next holder | " + " | ".join(f"{part:.0f}" for part in parts) + " |", flush=True)


if __name__ == "__main__":
    main()
