"""A cheap load generator for Thrift servers: many connections in one epoll process, messages encoded beforehand.

A scenario is a generator function: it yields the bytes of a request, receives the bytes of the reply, and calls
``tally.done()`` when one unit of its work is complete. Connections run in a closed loop: each sends as soon as it has
its answer. The server is measured, so the generator decodes nothing that a scenario does not ask for.

    def heartbeats(index, tally):
        beat = request("heartbeat", HeartbeatRequest(lockid=index))
        while True:
            yield beat
            tally.done()

    print(measure(("127.0.0.1", 9083), heartbeats, connections=8, seconds=5))

The generator measures itself too (``Measured.load``): processor seconds per second of its processes. The server does
not get the part of a core that the generator needs.
"""

import multiprocessing
import select
import socket
import ssl
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from thrift.protocol import fastbinary
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from benchmarks.cpu import Meter, Reader, Spent
from metastore.thrift_server.wire.interface import METHODS

Address = tuple[str, int]
Steps = Generator[bytes, bytes, None]
Scenario = Callable[[int, "Tally"], Steps]
WHOLE = 1 << 14
"""The largest reply that arrives in one piece on one machine."""
_ARRIVED = memoryview(bytearray(1 << 18))
"""The bytes of one read. malloc might need a call of the kernel for each new buffer, so one buffer is kept."""


def request(method: str, *args: Any, seqid: int = 1) -> bytes:
    """Return a call as bytes."""
    name = method.encode()
    arguments = getattr(METHODS[method], f"{method}_args")
    head = b"\x80\x01\0\x01" + len(name).to_bytes(4, "big") + name + seqid.to_bytes(4, "big")
    return head + fastbinary.encode_binary(arguments(*args), [arguments, arguments.thrift_spec])


def result(method: str, reply: bytes) -> Any:
    """Return the result of a reply, or raise its exception."""
    reader = TBinaryProtocolAccelerated(TMemoryBuffer(reply))
    _, kind, _ = reader.readMessageBegin()
    if kind == TMessageType.EXCEPTION:
        error = TApplicationException()
        error.read(reader)
        raise error
    answer = getattr(METHODS[method], f"{method}_result")()
    answer.read(reader)
    for entry in answer.thrift_spec:
        if entry and entry[0] != 0 and getattr(answer, entry[2]) is not None:
            raise getattr(answer, entry[2])
    return getattr(answer, "success", None)


class Tally:
    """The results of one connection; latencies are those of whole units of work.

    A scenario with long replies sets ``whole``, a cheap function that returns True for a complete reply.
    """

    def __init__(self) -> None:
        self.whole: Callable[[bytes], bool] = skipped_to_the_end
        self.calls = self.units = 0
        self.latencies: list[float] = []
        self._begun = 0.0

    def begin(self) -> None:
        """Begin to measure: forget all earlier results."""
        self.calls = self.units = 0
        self.latencies = []
        self._begun = time.perf_counter()

    def done(self) -> None:
        """Note that one unit of work is complete, and the next begins."""
        now = time.perf_counter()
        self.units += 1
        self.latencies.append(now - self._begun)
        self._begun = now

    def other(self) -> None:
        """Note other work, which is not part of the measured unit."""
        self._begun = time.perf_counter()


@dataclass(frozen=True)
class Measured:
    """The results of all connections together."""

    seconds: float
    calls: int
    units: int
    latencies: list[float]
    load: float = 0.0
    """The cores that the load generator kept busy."""
    spent: Spent | None = None
    """The server's cost meanwhile, if a meter was given."""

    @property
    def calls_per_second(self) -> float:
        """Return the rate of calls."""
        return self.calls / self.seconds

    @property
    def per_second(self) -> float:
        """Return the rate of sequences."""
        return self.units / self.seconds

    def latency_ms(self, percentile: float) -> float:
        """Return the latency of a unit of work."""
        ordered = sorted(self.latencies) or [0.0]
        return ordered[min(len(ordered) - 1, int(len(ordered) * percentile / 100))] * 1000


class _Skimming(TBinaryProtocolAccelerated):
    """A protocol that skips binary values as bytes: Thrift's own skip() would decode them as text."""

    readString = TBinaryProtocolAccelerated.readBinary  # noqa: N815 - Thrift's name


def skipped_to_the_end(reply: bytes) -> bool:
    """Return True if a long reply is complete, whatever it holds; slow for long lists."""
    reader = _Skimming(TMemoryBuffer(reply))
    try:
        reader.readMessageBegin()
        reader.skip(12)
    except EOFError:
        return False
    return True


class _Interval:
    """An interval of the measurement."""

    def __init__(self, tallies: list[Tally], reader: Reader | None) -> None:
        self.tallies, self.reader = tallies, reader
        self.before = reader.read() if reader else None
        self.own = time.process_time()
        self.started = time.perf_counter()
        for tally in tallies:
            tally.begin()

    def measured(self) -> Measured:
        elapsed = time.perf_counter() - self.started
        own = time.process_time() - self.own
        spent = self.reader.read().since(self.before) if self.reader and self.before else None
        return Measured(
            elapsed,
            sum(tally.calls for tally in self.tallies),
            sum(tally.units for tally in self.tallies),
            [latency for tally in self.tallies for latency in tally.latencies],
            own / elapsed,
            spent,
        )


def _advanced(sock: socket.socket, steps: Steps, tally: Tally, partial: dict[int, bytes]) -> bool:
    """Take the bytes that have arrived; send the next message after a full answer. Return False if there is none."""
    data = bytes(_ARRIVED[: sock.recv_into(_ARRIVED)])
    if not data:
        raise ConnectionError("the server closed the connection")
    if partial and sock.fileno() in partial:
        data = partial.pop(sock.fileno()) + data
    if data[-1] or (len(data) > WHOLE and not tally.whole(data)):
        partial[sock.fileno()] = data
        return True
    tally.calls += 1
    try:
        sock.sendall(steps.send(data))
    except StopIteration:
        return False
    return True


def drive(
    address: Address,
    scenario: Scenario,
    connections: int,
    seconds: float,
    warmup: float,
    first: int = 0,
    meter: Meter | None = None,
    report: Callable[[Measured], None] | None = None,
    intervals: int = 1,
    trusted: str = "",
) -> Measured:
    """Run a scenario on every connection in this process; measuring begins after the warm-up.

    ``trusted``: a file with what signed the server's certificate, where it speaks TLS; replies of up to `WHOLE` then.

    With ``report`` there are several intervals of so many seconds, each of which is reported when it ends.
    """
    poll = select.epoll()
    clients: dict[int, tuple[socket.socket, Steps, Tally]] = {}
    partial: dict[int, bytes] = {}
    tallies: list[Tally] = []
    reader = meter.start() if meter else None
    context = ssl.create_default_context(cafile=trusted) if trusted else None
    for index in range(first, first + connections):
        sock = socket.create_connection(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            sock = context.wrap_socket(sock, server_hostname="localhost")
        tally = Tally()
        tallies.append(tally)
        steps = scenario(index, tally)
        sock.sendall(next(steps))
        clients[sock.fileno()] = sock, steps, tally
        poll.register(sock.fileno(), select.EPOLLIN)
    interval = _Interval(tallies, reader)
    end = interval.started + (warmup or seconds)
    warm = not warmup
    while clients:
        if time.perf_counter() >= end:
            if warm:
                measured = interval.measured()
                intervals -= 1
                if report:
                    report(measured)
                if not intervals:
                    break
            warm = True
            interval = _Interval(tallies, reader)
            end = interval.started + seconds
        for fd, _ in poll.poll(0.5):
            if not _advanced(*clients[fd], partial):
                poll.unregister(fd)
                del clients[fd]
    else:
        measured = interval.measured()
    for sock, _, _ in clients.values():
        sock.close()
    return measured


def _drive_in_child(pipe: Any, *arguments: Any) -> None:
    pipe.send(drive(*arguments))


def measure(
    address: Address,
    scenario: Scenario,
    *,
    connections: int,
    seconds: float = 5,
    warmup: float = 1,
    processes: int = 1,
    meter: Meter | None = None,
    trusted: str = "",
) -> Measured:
    """Run a scenario in processes of its own, the connections spread over them; scenarios see indexes 0, 1, ..."""
    context = multiprocessing.get_context("spawn")
    running = []
    first = 0
    for i in range(min(processes, connections)):
        share = connections // processes + (i < connections % processes)
        here, there = context.Pipe(duplex=False)
        child = context.Process(
            target=_drive_in_child,
            args=(there, address, scenario, share, seconds, warmup, first, None if i else meter, None, 1, trusted),
        )
        child.start()
        there.close()
        running.append((child, here))
        first += share
    runs: list[Measured] = []
    for child, pipe in running:
        runs.append(pipe.recv())
        child.join()
    return Measured(
        max(part.seconds for part in runs),
        sum(part.calls for part in runs),
        sum(part.units for part in runs),
        [latency for part in runs for latency in part.latencies],
        sum(part.load for part in runs),
        runs[0].spent,
    )
