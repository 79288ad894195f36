"""Transaction and lock calls per second, beside Hive's metastore 2.3.10 (Java) and pgbench on the same PostgreSQL.

    python -m benchmarks.transactions [--seconds 4] [--runs 3] [--clients 1 8 32] [--only lock] [--without-hive]

Everything is durable as it would be in use: fsync and synchronous_commit are on. pgbench runs the least SQL that has
the effect, one PostgreSQL transaction per call: what a design without group commit cannot surpass.
"""

import argparse
import os
import statistics
import struct
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg2

from benchmarks import peers
from benchmarks.load import Address, Measured, Scenario, Tally, measure, request, result
from benchmarks.thrift_server import cpu_seconds
from metastore.client import MetastoreClient
from metastore.db.embedded import EmbeddedPostgres
from metastore.thrift_gen.hive_metastore import ttypes

Steps = Generator[bytes, bytes, None]
_MARK = 0x0102030405060708
_ACQUIRED = struct.pack(">i", ttypes.LockState.ACQUIRED)


def around(method: str, *args: Any) -> tuple[bytes, bytes]:
    """A message in two pieces, between which an id goes."""
    before, after = request(method, *args).split(struct.pack(">q", _MARK))
    return before, after


OPEN = request("open_txns", ttypes.OpenTxnRequest(1, "ann", "node1"))
COMMIT = around("commit_txn", ttypes.CommitTxnRequest(_MARK))
BEAT = around("heartbeat", ttypes.HeartbeatRequest(0, _MARK))
UNLOCK = around("unlock", ttypes.UnlockRequest(_MARK))


def opened(reply: bytes) -> bytes:
    """The id in an answer to open_txns; it stands before the ends of two structs."""
    if len(reply) < 50:
        result("open_txns", reply)
    return reply[-10:-2]


def granted(reply: bytes) -> bytes:
    """The id in an answer to lock: before the state (a field head of 3 bytes, 4 bytes) and the ends of two structs."""
    if reply[-6:-2] != _ACQUIRED:
        raise RuntimeError(f"the lock was not granted: {result('lock', reply)}")
    return reply[-17:-9]


def void(method: str, reply: bytes) -> None:
    """Nothing, or the error that the answer says."""
    if len(reply) != 12 + len(method) + 1:
        result(method, reply)


def lock_request(index: int, kind: int, txn_id: int | None) -> tuple[Any, ...]:
    """A request on a table of one's own, in each run another: the last one's locks may be left."""
    component = ttypes.LockComponent(kind, ttypes.LockLevel.TABLE, "bench", f"t{os.getpid()}_{index}")
    if txn_id is not None:
        component.operationType, component.isTransactional = ttypes.DataOperationType.INSERT, True
    return (ttypes.LockRequest([component], txn_id, "ann", "node1", "bench"),)


def open_commit(index: int, tally: Tally) -> Steps:
    before, after = COMMIT
    while True:
        txn_id = opened((yield OPEN))
        void("commit_txn", (yield before + txn_id + after))
        tally.done()


def write(index: int, tally: Tally) -> Steps:
    """What a writer does around its work: open, lock, one heartbeat, commit."""
    ask = around("lock", *lock_request(index, ttypes.LockType.SHARED_WRITE, _MARK))
    while True:
        txn_id = opened((yield OPEN))
        granted((yield txn_id.join(ask)))
        void("heartbeat", (yield txn_id.join(BEAT)))
        void("commit_txn", (yield txn_id.join(COMMIT)))
        tally.done()


def lock_unlock(index: int, tally: Tally) -> Steps:
    """What Iceberg does around its commit: an exclusive lock without a transaction."""
    ask = request("lock", *lock_request(index, ttypes.LockType.EXCLUSIVE, None))
    while True:
        lock_id = granted((yield ask))
        void("unlock", (yield lock_id.join(UNLOCK)))
        tally.done()


def get_open_txns(index: int, tally: Tally, least: int = 0) -> Steps:
    message = request("get_open_txns")
    while True:
        reply = yield message
        if len(reply) < 8 * least:
            raise RuntimeError(f"too short an answer: {result('get_open_txns', reply)}")
        tally.done()


# Title, what one client does, pgbench's script, transactions that are open meanwhile.
ROWS: list[tuple[str, Scenario, str, int]] = [
    ("open + commit", open_commit, "open_commit", 0),
    ("open + lock + heartbeat + commit", write, "write", 0),
    ("lock + unlock", lock_unlock, "lock_unlock", 0),
    ("get_open_txns", get_open_txns, "get_open_txns", 0),
    ("get_open_txns, 1000 open", partial(get_open_txns, least=1000), "get_open_txns", 1000),
]


class Contestant:
    """A server under measurement."""

    def __init__(self, address: Address, pid: int) -> None:
        self.address, self.pid = address, pid

    def hold_open(self, count: int) -> None:
        """Let so many transactions be open; those that earlier runs left are committed."""
        with MetastoreClient(f"thrift://{self.address[0]}:{self.address[1]}") as client:
            for txn in client.get_open_txns_info().open_txns:
                client.commit_txn(ttypes.CommitTxnRequest(txn.id))
            if count:
                client.open_txns(ttypes.OpenTxnRequest(count, "ann", "node1"))

    def run(self, scenario: Scenario, clients: int, seconds: float, warmup: float) -> tuple[Measured, float]:
        """A run, and the processor time of the server in microseconds per call."""
        before = cpu_seconds(self.pid)
        run = measure(self.address, scenario, connections=clients, seconds=seconds, warmup=warmup)
        # the warm-up's calls are not counted, its processor time is
        return run, (cpu_seconds(self.pid) - before) / run.calls * 1e6 * seconds / (seconds + warmup)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--warmup", type=float, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--only", default="", help="rows whose title contains this")
    parser.add_argument("--without-hive", action="store_true")
    parser.add_argument("--database-url", help="a PostgreSQL to use instead of an own one; databases are made in it")
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        url = options.database_url or own_postgres(work, running)
        contestants = {"ours": Contestant(*running.enter_context(
            peers.ours(work / "ours", peers.database(url, "bench_ours"))))}
        if not options.without_hive:
            try:
                server = running.enter_context(peers.hive(work / "hive", peers.database(url, "bench_hive")))
                contestants["hive"] = Contestant(*server)
            except peers.MissingError as missing:
                print(f"without Hive's metastore: {missing}")
        plain = peers.database(url, "bench_pgbench")
        peers.run_sql(plain, (peers.PGBENCH / "schema.sql").read_text())
        print(settings(url, options))
        rows = [row for row in ROWS if options.only in row[0]]
        if "hive" in contestants:  # let the virtual machine compile
            for scenario in (open_commit, write, lock_unlock, get_open_txns):
                contestants["hive"].run(scenario, 8, 4 * options.warmup, 0)
        compare(rows, contestants, plain, options)


def own_postgres(work: Path, running: ExitStack) -> str:
    postgres = EmbeddedPostgres(work / "postgres", ends_with_us=True)
    postgres.start()
    running.callback(postgres.stop)
    return postgres.tcp_url


def settings(url: str, options: argparse.Namespace) -> str:
    connection = psycopg2.connect(url)
    cursor = connection.cursor()
    cursor.execute("SELECT current_setting('server_version'), current_setting('fsync'), "
                   "current_setting('synchronous_commit'), current_setting('shared_buffers')")
    [(version, fsync, synchronous, buffers)] = cursor.fetchall()
    connection.close()
    return (f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}; PostgreSQL "
            f"{version}, fsync={fsync}, synchronous_commit={synchronous}, shared_buffers={buffers}; "
            f"median of {options.runs} runs of {options.seconds:g} s\n"
            f"Sequences per second; p50 and p99 in ms and cpu in microseconds of our server per call.")


def compare(rows: list[tuple[str, Scenario, str, int]], contestants: dict[str, Contestant], plain: str,
            options: argparse.Namespace) -> None:
    behind = []
    print("| sequence | clients | ours /s | p50 | p99 | cpu | Hive 2.3.10 /s | ratio | pgbench /s | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for title, scenario, script, held in rows:
        for contestant in contestants.values():
            contestant.hold_open(held)
        peers.run_sql(plain, "TRUNCATE txns, locks, components, completed; INSERT INTO txns (state, started, "
                             "heartbeat, owner, host, agent) SELECT 'open', now(), now(), 'ann', 'node1', 'bench' "
                             f"FROM generate_series(1, {held}); ANALYZE")
        for clients in options.clients:
            found: dict[str, list[tuple[Measured, float]]] = {name: [] for name in contestants}
            tps = []
            for _ in range(options.runs):
                for name, contestant in contestants.items():
                    found[name].append(contestant.run(scenario, clients, options.seconds, options.warmup))
                tps.append(peers.pgbench(plain, script, clients, options.seconds))
            rate = {name: statistics.median(run.per_second for run, _ in runs) for name, runs in found.items()}
            p50, p99 = (statistics.median(run.latency_ms(p) for run, _ in found["ours"]) for p in (50, 99))
            cpu = statistics.median(cost for _, cost in found["ours"])
            peer = rate.get("hive")
            beside = f"{peer:.0f} | {rate['ours'] / peer:.2f}" if peer else "- | -"
            limit = statistics.median(tps)
            print(f"| {title} | {clients} | {rate['ours']:.0f} | {p50:.2f} | {p99:.2f} | {cpu:.0f} | {beside} | "
                  f"{limit:.0f} | {rate['ours'] / limit:.2f} |", flush=True)
            if peer and rate["ours"] <= peer:
                behind.append(f"{title}, {clients} clients")
    if behind:
        sys.exit("Behind Hive's metastore: " + "; ".join(behind))


if __name__ == "__main__":
    main()
