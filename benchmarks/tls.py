"""The cost of TLS beside the same calls without it: calls, handshakes, memory, and clients that fail in handshakes.

    python -m benchmarks.tls [--seconds 3] [--runs 3] [--handshakes 300] [--idle 1000] [--no-database]

Servers with and without TLS take turns within each row. The certificate has an elliptic key, and for handshakes an RSA
key of 2048 bits as well.
"""

import argparse
import multiprocessing
import os
import resource
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from benchmarks import peers, scenarios
from benchmarks.cpu import cpu_seconds
from benchmarks.load import Address, Measured, Scenario, measure, request
from benchmarks.thrift_server import SCENARIOS, Handlers
from benchmarks.transactions import own_postgres
from metastore.config import ServerSettings, TlsSettings
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.server import Server

MOST_SLOWER, MOST_HANDSHAKE_MS, MOST_IDLE_MB, MOST_TIMES_P99 = 0.15, 5.0, 60.0, 2.0
FAILED_A_SECOND = 1000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Served(NamedTuple):
    """A server under measurement; ``trusted``: the file with the certificate that clients trust, "" without TLS."""

    address: Address
    pid: int
    trusted: str = ""

    def run(self, scenario: Scenario, clients: int, seconds: float) -> tuple[Measured, float]:
        """Run a scenario; return the result and the server's processor time per call in microseconds."""
        before = cpu_seconds(self.pid)
        run = measure(self.address, scenario, connections=clients, seconds=seconds, warmup=0, trusted=self.trusted)
        return run, (cpu_seconds(self.pid) - before) / run.calls * 1e6

    def connected(self, context: ssl.SSLContext | None) -> socket.socket:
        """Return a connection over which a call has been made."""
        sock: socket.socket = socket.create_connection(self.address)
        if context is not None:
            sock = context.wrap_socket(sock, server_hostname="localhost")
        sock.sendall(request("getStatus"))
        sock.recv(1000)
        return sock

    def megabytes(self) -> float:
        """Return the server's own resident memory."""
        fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE / 1e6


def certificate(directory: Path, name: str, key: Any) -> str:
    """Write a file with a key and its self-signed certificate; return its path."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + made.public_bytes(Encoding.PEM)
    )
    return str(path)


def serve(pipe: Any, keystore: str) -> None:
    """Run the server alone, with handlers that do nothing."""
    stats = CallStats()
    tls = TlsSettings(use_ssl=True, keystore=(keystore,)) if keystore else None
    handlers = handlers_of(Handlers(), Fb303Handlers(stats, 1))
    server = Server(ServerSettings(host="127.0.0.1", port=0), handlers, stats, tls=tls)
    pipe.send(server.start())
    pipe.recv()
    server.drain(0.2)


def started(keystore: str, running: ExitStack) -> Served:
    """Start the server in a process of its own, with TLS if ``keystore`` is given."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, keystore), daemon=True)
    process.start()
    running.callback(here.send, None)  # the server ends with its pipe
    return Served(here.recv(), process.pid or 0, keystore)


def with_database(work: Path, keystore: str, running: ExitStack) -> list[Served]:
    """Return whole servers on one PostgreSQL, each with a database of its own: without and with TLS."""
    url = own_postgres(work, running)
    secure = ["--set=hive.metastore.use.SSL=true", f"--set=hive.metastore.keystore.path={keystore}"]
    servers = []
    for name, arguments, trusted in (("plain", [], ""), ("tls", secure, keystore)):
        address, pid = running.enter_context(peers.ours(work / name, peers.database(url, f"bench_{name}"), *arguments))
        servers.append(Served(address, pid, trusted))
    return servers


def compare(title: str, scenario: Scenario, pair: list[Served], options: argparse.Namespace) -> None:
    """Print rows for each number of clients."""
    for clients in options.connections:
        runs: list[list[tuple[Measured, float]]] = [[], []]
        for _ in range(options.runs):
            for served, measured in zip(pair, runs, strict=True):
                measured.append(served.run(scenario, clients, options.seconds))
        plain, secure = (statistics.median(run.calls_per_second for run, _ in measured) for measured in runs)
        cost, secure_cost = (statistics.median(cost for _, cost in measured) for measured in runs)
        p99, secure_p99 = (statistics.median(run.latency_ms(99) for run, _ in measured) for measured in runs)
        goal = met(plain * (1 - MOST_SLOWER), secure)
        print(
            f"| {title} | {clients} | {plain:.0f} | {secure:.0f} | {secure / plain:.2f} | {cost:.0f} | "
            f"{secure_cost:.0f} | {p99:.2f} | {secure_p99:.2f} | {goal} |",
            flush=True,
        )


def handshakes(kind: str, served: Served, count: int) -> None:
    """Run full handshakes, one after the other, each with one call."""
    context = ssl.create_default_context(cafile=served.trusted)
    for _ in range(20):
        served.connected(context).close()
    before = cpu_seconds(served.pid)
    for _ in range(count):
        served.connected(context).close()
    spent = (cpu_seconds(served.pid) - before) / count * 1000
    print(
        f"Handshake with a call, {kind}: {spent:.2f} ms of the server's processor time, mean of {count} "
        f"({met(spent, MOST_HANDSHAKE_MS)}: {MOST_HANDSHAKE_MS:g} ms)",
        flush=True,
    )


def idle(pair: list[Served], count: int) -> None:
    """Print the memory of connections that made a call and wait."""
    for name, served in zip(("without TLS", "with TLS"), pair, strict=True):
        context = ssl.create_default_context(cafile=served.trusted) if served.trusted else None
        before = served.megabytes()
        kept = [served.connected(context) for _ in range(count)]
        used = served.megabytes() - before
        for sock in kept:
            sock.close()
        print(
            f"{count} idle connections {name}: {used:.1f} MB ({met(used, MOST_IDLE_MB * count / 1000)}: "
            f"{MOST_IDLE_MB:g} MB for 1000)",
            flush=True,
        )


def greeting() -> bytes:
    """Return the first message of a TLS handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def flood(address: Address, first: bytes, seconds: float, pipe: Any) -> None:
    """Open connections at a steady rate that send one message and leave a moment later; send back their rate."""
    waiting: deque[tuple[float, socket.socket]] = deque()
    begun = time.monotonic()
    count = 0
    while (now := time.monotonic()) < begun + seconds:
        while waiting and waiting[0][0] < now - 0.2:
            waiting.popleft()[1].close()
        if count >= (now - begun) * FAILED_A_SECOND:
            time.sleep(0.001)
            continue
        sock = socket.create_connection(address)
        sock.sendall(first)
        waiting.append((now, sock))
        count += 1
    pipe.send(count / (time.monotonic() - begun))


def strangers(title: str, first: bytes, served: Served, options: argparse.Namespace) -> None:
    """Print the effect of clients that fail in handshakes on eight others that are connected."""
    context = multiprocessing.get_context("spawn")
    alone, beside, rates = [], [], []
    for _ in range(options.runs):
        alone.append(served.run(SCENARIOS["lock (coalesced lane)"], 8, options.seconds)[0])
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=flood, args=(served.address, first, options.seconds + 3, there))
        child.start()
        time.sleep(1.5)
        beside.append(served.run(SCENARIOS["lock (coalesced lane)"], 8, options.seconds)[0])
        rates.append(here.recv())
        child.join()
    before, after = (statistics.median(run.latency_ms(99) for run in runs) for runs in (alone, beside))
    slower = statistics.median(run.calls_per_second for run in beside) / statistics.median(
        run.calls_per_second for run in alone
    )
    print(
        f"{statistics.median(rates):.0f} failed handshakes a second ({title}): p99 of 8 others {before:.2f} -> "
        f"{after:.2f} ms, {after / before:.2f} times ({met(after, MOST_TIMES_P99 * before)}: {MOST_TIMES_P99:g}); "
        f"they make {slower:.2f} of their calls",
        flush=True,
    )


def met(value: float, most: float) -> str:
    """Return yes or NO for the table."""
    return "yes" if value <= most else "NO"


def main() -> None:
    """Measure the parts that were chosen, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--handshakes", type=int, default=300)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--no-database", dest="database", action="store_false", help="the server alone")
    parser.add_argument("--only", default="", help="calls, handshakes, idle, strangers: one of them")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        keys: dict[str, Callable[[], Any]] = {
            "elliptic key": lambda: ec.generate_private_key(ec.SECP256R1()),
            "RSA key": lambda: rsa.generate_private_key(65537, 2048),
        }
        stores = {kind: certificate(work, kind.split()[0], make()) for kind, make in keys.items()}
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}, "
            f"{ssl.OPENSSL_VERSION}; median of {options.runs} runs of {options.seconds:g} s\n",
            flush=True,
        )
        pair = [started("", running), started(stores["elliptic key"], running)]
        if options.only in {"", "calls"}:
            print(
                "| calls, connections kept | clients | /s | with TLS | x | cpu us | with TLS | p99 ms | with TLS | "
                "goal met |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
            )
            for title, scenario in SCENARIOS.items():
                compare(title, scenario, pair, options)
            if options.database:
                whole = with_database(work, stores["elliptic key"], running)
                for title, scenario in (
                    ("open + commit, with PostgreSQL", scenarios.open_commit),
                    ("open + lock + heartbeat + commit", scenarios.write),
                ):
                    compare(title, scenario, whole, options)
            print()
        if options.only in {"", "handshakes"}:
            for kind, store in stores.items():
                handshakes(kind, started(store, running), options.handshakes)
        if options.only in {"", "idle"}:
            idle([started("", running), started(stores["elliptic key"], running)], options.idle)
        if options.only in {"", "strangers"}:
            strangers("no TLS at all", request("getStatus"), pair[1], options)
            strangers("gone after the greeting", greeting(), pair[1], options)


if __name__ == "__main__":
    main()
