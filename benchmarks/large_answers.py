"""Long answers and long requests: their time, the time of the first byte, and the memory that they need.

    python -m benchmarks.large_answers [--runs 3] [--scale 1] [--only locks] [--no-peers] [--minutes 16]

Our server is measured beside Hive's metastores 2.3.10 and 4.2.0 on one PostgreSQL, in turn within each row. A client
sends the call and takes the bytes without decoding them. ``x``: the faster peer's time divided by ours. ``server``,
``pg``: processor time of our server and of PostgreSQL for one of our answers, which hardly depends on other work of the
machine. ``MB``: resident memory of our server before the row, and its peak meanwhile. ``others``: p99 of another
client's heartbeats. Rows that have not begun after ``--minutes`` are left out. Our server runs no loops, so queued
compactions stay queued.
"""

import argparse
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import hive, large_states, peers
from benchmarks.contestants import MANY_OPEN, Contestant, Hive23, Hive42
from benchmarks.cpu import Meter, Spent
from benchmarks.large_states import COLUMNS, DAYS, DB, name_of, partitions
from benchmarks.load import WHOLE, Address, request, result
from benchmarks.transactions import own_postgres, settings
from metastore.thrift_gen.hive_metastore import ttypes

OURS, HIVE_2_3, HIVE_4_2 = "ours", "hive_2_3", "hive_4_2"
MOST_MB = 50
"""The memory by which our server may grow during an answer."""
MOST_OTHERS_MS = 20
FIRST_BYTE_MS = 50
PATIENCE_S = 100
"""The longest time for an answer. A slower contestant is ended, and this time is counted."""
MARK = request("getStatus", seqid=0x6D61726B)
HEAD = (
    "| work | clients | ours, ms | first byte | Hive 2.3.10 | Hive 4.2.0 | x | server, ms | pg, ms | MB | others, ms | "
    "goal met |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


class Row(NamedTuple):
    """A call whose answer is long; ``state``: the state of the data that it needs."""

    title: str
    call: bytes
    clients: int
    goal: float
    state: Callable[[Contestant], None] | None = None
    others: bool = False
    """True if other clients send heartbeats meanwhile."""
    first_byte: bool = False
    """True if there is a goal for the call."""


class Asker:
    """A client that sends one call again and again and takes the answers."""

    def __init__(self, address: Address, call: bytes, size: int = 0) -> None:
        """Connect. ``size``: of the answer, in bytes; 0: unknown yet."""
        self._socket = socket.create_connection(address)
        self._socket.settimeout(PATIENCE_S)
        self._call, self.size = call, size or self._sized(call)

    def _sized(self, call: bytes) -> int:
        """Return the size of the answer: it ends where the answer to a short call that is sent behind it begins."""
        self._socket.sendall(MARK)
        end = self._socket.recv(WHOLE)
        self._socket.sendall(call + MARK)
        size, tail = 0, b""
        while not tail.endswith(end):
            part = self._socket.recv(1 << 20)
            if not part:
                raise ConnectionError("the server closed the connection")
            size += len(part)
            tail = (tail + part)[-WHOLE:]
        if size < WHOLE:  # the answer may be an exception, which this raises
            result(call[8 : 8 + call[7]].decode(), tail[: -len(end)])
        return size - len(end)

    def ask(self) -> tuple[float, float]:
        """Return the milliseconds until the first byte and until the last."""
        began = time.perf_counter()
        self._socket.sendall(self._call)
        buffer = bytearray(1 << 18)
        left, first = self.size, 0.0
        while left > 0:
            received = self._socket.recv_into(buffer)
            if not received:
                raise ConnectionError("the server closed the connection")
            left -= received
            first = first or time.perf_counter() - began
        return first * 1000, (time.perf_counter() - began) * 1000

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Figures(NamedTuple):
    """The figures of a contestant, in ms for an answer; first bytes only with one client."""

    ms: float
    first: float = 0.0
    spent: Spent | None = None
    """The cost of one answer."""
    others: float = 0.0
    before: int = 0
    most: int = 0


def rows(few: int, many: int, locks: int) -> list[Row]:
    """Return the rows. ``few``, ``many``: partitions of two tables; ``locks``: the larger number of locks."""
    some = [name_of(n) for n in range(0, few, max(1, few // 1000))]
    everything = request("get_partitions", DB, "t", -1)
    names = request("get_partition_names", DB, "t", -1)
    listed = request("show_locks", ttypes.ShowLocksRequest())
    compactions = request("show_compact", ttypes.ShowCompactRequest())
    tables = [f"table_{n}" for n in range(1, few // 10 + 1)]
    described = [name_of(n) for n in range(few // 10)]
    columns = [f"column_{n}" for n in range(COLUMNS)]
    statistics_of = ttypes.PartitionsStatsRequest(DB, "t", columns, described)
    one_day = request("get_partitions_by_filter", DB, "large", f'day = "d{7 % DAYS:02}"', -1)
    return [
        Row(f"get_partitions, {few}", everything, 1, 4, others=True),
        Row(f"get_partitions, {few}", everything, 8, 4, others=True),
        Row(f"get_partitions_by_names, {len(some)}", request("get_partitions_by_names", DB, "t", some), 1, 5),
        Row(f"get_partitions_by_filter, 1 % of {many}", one_day, 1, 10),
        Row(f"get_partition_names, {few}", names, 1, 4),
        Row(f"get_partition_names, {many}", request("get_partition_names", DB, "large", -1), 1, 4),
        Row(
            f"get_table_objects_by_name_req, {len(tables)}",
            request("get_table_objects_by_name_req", ttypes.GetTablesRequest(DB, tables)),
            1,
            4,
            lambda server: large_states.make_many_tables(server, few),
        ),
        Row(f"get_table_meta, {few}", request("get_table_meta", DB, "table_*", None), 1, 4),
        Row(
            f"get_partitions_statistics_req, {len(described)}",
            request("get_partitions_statistics_req", statistics_of),
            1,
            4,
            lambda server: large_states.describe_columns(server, len(described)),
        ),
        Row(f"show_locks, {locks // 20}", listed, 1, 4, lambda server: large_states.hold_locks(server, locks // 20)),
        Row(f"show_locks, {locks // 20}", listed, 8, 4),
        Row(f"show_locks, {locks}", listed, 1, 4, lambda server: large_states.hold_locks(server, locks)),
        Row(f"show_compact, {few}", compactions, 1, 4, lambda server: large_states.queue_compactions(server, few)),
        Row(f"get_open_txns_info, {few}", request("get_open_txns_info"), 1, 4, lambda server: server.hold_open(few)),
        Row(f"get_partitions, {many}", request("get_partitions", DB, "large", -1), 1, 4, first_byte=True),
    ]


def beat(address: Address, pipe: Any) -> None:
    """Send heartbeats of a transaction, 200 a second, until told to stop; send their p99 in ms back."""
    with Contestant(address, 0, "").client() as client:
        [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "node1")).txn_ids
        pipe.send(None)
        taken = []
        while not pipe.poll(0.005):
            began = time.perf_counter()
            client.heartbeat(ttypes.HeartbeatRequest(0, txn_id))
            taken.append((time.perf_counter() - began) * 1000)
        client.commit_txn(ttypes.CommitTxnRequest(txn_id))
    pipe.send(sorted(taken)[int(len(taken) * 0.99)] if taken else 0.0)


@contextmanager
def heartbeats(address: Address, wanted: bool) -> Iterator[list[float]]:  # noqa: FBT001
    """Run another client's heartbeats in a process of its own; their p99 is in the list afterwards."""
    p99: list[float] = []
    if not wanted:
        yield p99
        return
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=beat, args=(address, there))
    child.start()
    try:
        here.recv()
        yield p99
        here.send(None)
        p99.append(here.recv())
    finally:
        here.close()
        child.join(10)
        child.kill()


def memory(pid: int, which: str = "VmRSS") -> int:
    """Return resident memory in MB."""
    return int(Path(f"/proc/{pid}/status").read_text().split(f"{which}:")[1].split()[0]) >> 10


def measured(server: Contestant, row: Row, size: int) -> Figures:
    """Return the figures of a row: every client asks twice, a single client three times."""
    askers = [Asker(server.address, row.call, size) for _ in range(row.clients)]
    times = 3 if row.clients == 1 else 2
    before = memory(server.pid)
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # this resets the peak to the present memory
    meter = Meter(server.pid, server.database_url).start()
    with heartbeats(server.address, row.others) as p99, ThreadPoolExecutor(row.clients) as threads:
        spent = meter.read()
        began = time.perf_counter()
        answers = [
            each for asked in threads.map(lambda one: [one.ask() for _ in range(times)], askers) for each in asked
        ]
        elapsed = (time.perf_counter() - began) * 1000
        spent = meter.read().since(spent)
    meter.cursor.connection.close()
    for asker in askers:
        asker.close()
    one = row.clients == 1
    return Figures(
        statistics.median(ms for _, ms in answers) if one else elapsed / len(answers),
        statistics.median(first for first, _ in answers) if one else 0.0,
        Spent(*(each / len(answers) for each in spent)),  # type: ignore[arg-type]
        p99[0] if p99 else 0.0,
        before,
        memory(server.pid, "VmHWM"),
    )


def middle(runs: list[Figures]) -> Figures:
    """Return the median of each figure; for memory, the least before and the most."""
    spent = [run.spent for run in runs if run.spent]
    return Figures(
        statistics.median(run.ms for run in runs),
        statistics.median(run.first for run in runs),
        Spent(*map(statistics.median, zip(*spent, strict=True))) if spent else None,
        statistics.median(run.others for run in runs),
        runs[0].before,
        max(run.most for run in runs),
    )


class Comparison:
    """The contestants and the table."""

    def __init__(self, options: argparse.Namespace, running: ExitStack) -> None:
        self.options, self.ends = options, time.monotonic() + options.minutes * 60
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        self.url = own_postgres(work, running)
        url = peers.database(self.url, "bench_ours")
        how = [f"--set={key}={value}" for key, value in MANY_OPEN.items()]
        ours = running.enter_context(peers.ours(work / OURS, url, "--no-loops", *how))
        self.servers: dict[str, Contestant] = {OURS: Contestant(*ours, url)}
        self.gone: set[str] = set()
        starts = ((HIVE_4_2, Hive42, hive.hive_4_2), (HIVE_2_3, Hive23, hive.hive_2_3))
        for name, kind, start in starts if options.peers else ():
            url = peers.database(self.url, f"bench_{name}")
            try:
                self.servers[name] = kind(*running.enter_context(start(work / name, url, MANY_OPEN)), url)
            except hive.MissingError as missing:
                print(f"without {name}: {missing}")

    def run(self) -> None:
        """Measure every row, state by state, and print its line."""
        few, many, locks = (max(20, int(n * self.options.scale)) for n in (10_000, 100_000, 20_000))
        for name in list(self.servers):
            self.trying(name, lambda server: large_states.make_tables(server, t=few, large=many, new=0))
        print(f"{settings(self.url)}; median of {self.options.runs} runs\n{HEAD}", flush=True)
        wanted = [row for row in rows(few, many, locks) if self.options.only in row.title]
        for row in wanted:
            if row.state:
                for name in list(self.servers):
                    self.trying(name, row.state)
            if not self.is_late(row.title):
                self.report(row, self.compared(row))
        if not self.options.only or "partitions" in self.options.only:
            self.written(few, max(2, few // 10))

    def is_late(self, title: str) -> bool:
        """Return True, and say so in the row's line, if there is no time left."""
        late = time.monotonic() > self.ends
        if late:
            print(f"| {title} | not measured: no time left |", flush=True)
        return late

    def trying(self, name: str, work: Callable[[Contestant], Any]) -> Any:
        """Return the result; drop a contestant that fails from all later rows."""
        if name in self.gone:
            return None
        try:
            return work(self.servers[name])
        except Exception as error:
            if name == OURS:
                raise
            print(f"  {name}: {type(error).__name__} {str(error)[:300]}", file=sys.stderr, flush=True)
            if isinstance(error, TimeoutError | ConnectionError):
                self.gone.add(name)
                os.kill(self.servers[name].pid, signal.SIGKILL)
            return None

    def compared(self, row: Row) -> dict[str, Figures]:
        """Measure a row; contestants take turns."""
        sizes = {name: self.trying(name, lambda server: sized(server, row.call)) for name in self.servers}
        runs: dict[str, list[Figures]] = {}
        for _ in range(self.options.runs):
            for name, size in sizes.items():
                if size and (figures := self.trying(name, lambda server, size=size: measured(server, row, size))):
                    runs.setdefault(name, []).append(figures)
        return {name: middle(each) for name, each in runs.items()}

    def written(self, many: int, some: int) -> None:
        """Add, alter and drop many partitions in one call. The slow peer comes last, since it may be ended for it."""
        calls: dict[str, tuple[float, Sequence[Callable[[str], bytes]]]] = {
            f"add_partitions, {many} in one call": (10.0, [partial(added, count=many)]),
            f"alter_partitions, {some}": (5.0, [partial(altered, count=some, run=n) for n in range(self.options.runs)]),
            f"drop_partitions_req, {many}": (10.0, [partial(dropped, count=many)]),
        }
        for title, (goal, runs) in calls.items():
            if self.is_late(title):
                continue
            figures: dict[str, list[Figures]] = {}
            for run, name in product(runs, list(self.servers)):
                if name not in self.gone and (found := self.trying(name, lambda server, run=run: once(server, run))):
                    figures.setdefault(name, []).append(found)
            late = dict.fromkeys(self.gone, Figures(PATIENCE_S * 1000))
            self.report(Row(title, b"", 1, goal), {name: middle(each) for name, each in figures.items()} | late)

    @staticmethod
    def report(row: Row, figures: dict[str, Figures]) -> None:
        """Print the line of a row, and which goals it misses."""
        ours = figures[OURS]
        others = [each.ms for name, each in figures.items() if name != OURS]
        times = min(others) / ours.ms if others else 0.0
        grown = ours.most - ours.before
        missed = [
            *([f"{times:.1f} of {row.goal:g} x"] if others and times < row.goal else []),
            *([f"{grown} of {MOST_MB} MB"] if ours.most and grown > MOST_MB else []),
            *([f"{ours.others:.0f} of {MOST_OTHERS_MS} ms of others"] if ours.others > MOST_OTHERS_MS else []),
            *(
                [f"first byte {ours.first:.0f} of {FIRST_BYTE_MS} ms"]
                if row.first_byte and ours.first > FIRST_BYTE_MS
                else []
            ),
        ]
        spent = ours.spent
        print(
            f"| {row.title} | {row.clients} | {ours.ms:.1f} | {ours.first:.1f} | "
            + "".join(f"{figures[name].ms:.1f} | " if name in figures else "- | " for name in (HIVE_2_3, HIVE_4_2))
            + f"{times:.1f} | "
            + (f"{spent.server * 1000:.1f} | {spent.postgres * 1000:.1f} | " if spent else "- | - | ")
            + f"{ours.before}, {ours.most} | {ours.others:.1f} | "
            + f"{'no: ' + ', '.join(missed) if missed else f'yes, {row.goal:g} x' if others else '-'} |",
            flush=True,
        )


def sized(server: Contestant, call: bytes) -> int:
    """Return the bytes of the answer. The call is sent twice: the first time the Java virtual machine compiles."""
    asker = Asker(server.address, call)
    asker.ask()
    asker.close()
    return asker.size


def once(server: Contestant, call: Callable[[str], bytes]) -> Figures:
    """Measure one call that changes something."""
    with server.client() as client:
        place = client.get_database(DB).locationUri + "/new"
    message, meter, before = call(place), Meter(server.pid, server.database_url).start(), memory(server.pid)
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")
    spent, began = meter.read(), time.perf_counter()
    Asker(server.address, message).close()
    ms = (time.perf_counter() - began) * 1000
    spent = meter.read().since(spent)
    return Figures(ms, spent=spent, before=before, most=memory(server.pid, "VmHWM"))


def added(place: str, count: int) -> bytes:
    """Return a request that adds ``count`` partitions."""
    return request("add_partitions", list(partitions("new", place, range(count))))


def altered(place: str, count: int, run: int) -> bytes:
    """Return a request that alters ``count`` partitions."""
    return request("alter_partitions", DB, "new", list(partitions("new", place, range(count), numRows=f"20{run}")))


def dropped(_place: str, count: int) -> bytes:
    """Return a request that drops ``count`` partitions."""
    wanted = ttypes.RequestPartsSpec(names=[name_of(n) for n in range(count)])
    return request("drop_partitions_req", ttypes.DropPartitionsRequest(DB, "new", wanted, deleteData=False))


def main() -> None:
    """Start the servers and compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--scale", type=float, default=1, help="of all numbers: 0.01 shows in two minutes that it works"
    )
    parser.add_argument("--minutes", type=float, default=16, help="begin nothing later")
    parser.add_argument("--only", default="", help="rows whose title contains this")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="our server alone")
    with ExitStack() as running:
        Comparison(parser.parse_args(), running).run()


if __name__ == "__main__":
    main()
