"""Mixed work for minutes, which shows whether anything grows.

    python -m benchmarks.sustained [--minutes 10] [--interval 60] [--clients 32]      make bench-sustained

Of every 20 actions of a client, 16 are transactions that write and commit: 9 inserts (open, lock, commit), 4 with a
heartbeat, 2 updates of a partition, and 1 with all calls of Hive (8 calls). The others: 2 readers, 1 reader that aborts
(aborted writes would stay listed until their table is compacted, and nothing is compacted here), 1 lock and unlock of
an Iceberg commit. Each client has ten tables. The server runs with its loops on. Committed transactions are kept for
two minutes instead of an hour (metastore.txn.committed.retention), since a shorter run would only show an hour's worth
of them accumulate.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import peers
from benchmarks.contestants import Contestant
from benchmarks.cpu import Meter
from benchmarks.load import Measured, Steps, Tally, drive, request
from benchmarks.messages import TXN, granted, opened, pieces, void
from benchmarks.scenarios import BEAT, COMMIT, OPEN, OPEN_TXNS, UNLOCK, FullWriter, lock_request, table_of
from benchmarks.startup import resident
from benchmarks.transactions import own_postgres, settings
from metastore.thrift_gen.hive_metastore import ttypes

GOAL = 3000
"""The write transactions per second."""
TABLES = 10
RETENTION = "metastore.txn.committed.retention=2m"
STEADY_AFTER = 4
"""The minutes after which nothing should grow: by then retention, house-keeping and vacuum have run."""

ABORT = pieces("abort_txn", ttypes.AbortTxnRequest(TXN))
READ = request("open_txns", ttypes.OpenTxnRequest(1, "ann", "node1", txn_type=ttypes.TxnType.READ_ONLY))


class Work:
    """A client's work on a table of its own."""

    def __init__(self, table: str) -> None:
        kinds, operations = ttypes.LockType, ttypes.DataOperationType
        self.write_lock = pieces("lock", *lock_request(table, kinds.SHARED_WRITE, TXN))
        self.update_lock = pieces("lock", *lock_request(table, kinds.SHARED_WRITE, TXN, operation=operations.UPDATE))
        self.read_lock = pieces("lock", *lock_request(table, kinds.SHARED_READ, TXN, operation=operations.SELECT))
        self.iceberg_lock = request("lock", *lock_request(f"{table}_iceberg", kinds.EXCLUSIVE, None))
        self.full_writer = FullWriter(table)

    def insert(self) -> Steps:
        """Insert once."""
        return self.transaction(self.write_lock)

    def slow_insert(self) -> Steps:
        """Insert once, with a heartbeat."""
        return self.transaction(self.write_lock, beats=1)

    def update(self) -> Steps:
        """Update once."""
        return self.transaction(self.update_lock)

    def full(self) -> Steps:
        """Write once, with all calls of a statement of Hive."""
        return self.full_writer.steps()

    @staticmethod
    def transaction(lock: tuple[bytes, ...], beats: int = 0) -> Steps:
        """Open a transaction, lock, heartbeat and commit."""
        txn_id = opened((yield OPEN))
        granted((yield txn_id.join(lock)))
        for _ in range(beats):
            void("heartbeat", (yield txn_id.join(BEAT)))
        void("commit_txn", (yield txn_id.join(COMMIT)))

    def read(self) -> Steps:
        """Read once: a snapshot, a lock, a commit."""
        txn_id = opened((yield READ))
        yield OPEN_TXNS
        granted((yield txn_id.join(self.read_lock)))
        void("commit_txn", (yield txn_id.join(COMMIT)))

    def abort(self) -> Steps:
        """Open a transaction, lock and abort."""
        txn_id = opened((yield OPEN))
        granted((yield txn_id.join(self.read_lock)))
        void("abort_txn", (yield txn_id.join(ABORT)))

    def iceberg(self) -> Steps:
        """Take and release the lock of an Iceberg commit."""
        lock_id = granted((yield self.iceberg_lock))
        void("unlock", (yield lock_id.join(UNLOCK)))


WRITES = [*[Work.insert] * 9, *[Work.slow_insert] * 4, *[Work.update] * 2, Work.full]
OTHERS = [Work.read, Work.abort, Work.read, Work.iceberg]
MIX = [job for start in range(4) for job in (*WRITES[start::4], OTHERS[start])]


def mixed(index: int, tally: Tally) -> Steps:
    """Run one client; the counted units are the transactions that write and commit."""
    tables = [Work(f"{table_of(index)}_{number}") for number in range(TABLES)]
    turn = index
    while True:
        job = MIX[turn % len(MIX)]
        yield from job(tables[turn % TABLES])
        (tally.other if job in OTHERS else tally.done)()
        turn += 1 if (turn + 1) % len(MIX) else 2  # the next round meets other tables


class Sizes(NamedTuple):
    """The sizes in the database."""

    tables_mb: float
    indexes_mb: float
    rows: int
    dead: int
    by_table: dict[str, float]


def sizes(url: str) -> Sizes:
    """Return the sizes and rows of the database's tables."""
    rows = peers.run_sql(
        url,
        "SELECT relname, pg_table_size(relid), pg_indexes_size(relid), n_live_tup, n_dead_tup FROM pg_stat_user_tables",
    )
    table, index, live, dead = (sum(row[column] for row in rows) for column in range(1, 5))
    return Sizes(
        float(table) / 1e6, float(index) / 1e6, int(live), int(dead), {row[0]: (row[1] + row[2]) / 1e6 for row in rows}
    )


class Line(NamedTuple):
    """The figures of an interval."""

    rate: float
    p99: float
    rss: float
    megabytes: float


def load(pipe: Any, server: Contestant, clients: int, interval: float, intervals: int) -> None:
    """Send the mixed work and report each interval through ``pipe``."""
    drive(
        server.address,
        mixed,
        clients,
        interval,
        min(5, interval),
        meter=Meter(server.pid, server.database_url),
        report=pipe.send,
        intervals=intervals,
    )


def run(server: Contestant, clients: int, interval: float, intervals: int) -> list[Line]:
    """Run the load in a process of its own. Return a line for each interval."""
    print(
        "| after s | write txns /s | p50 ms | p99 ms | server cores | PostgreSQL cores | load cores | "
        "server RSS MB | tables MB | indexes MB | rows | dead rows |\n" + "|--:" * 12 + "|",
        flush=True,
    )
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=load, args=(there, server, clients, interval, intervals))
    child.start()
    there.close()
    lines = []
    before = sizes(server.database_url)
    for number in range(1, intervals + 1):
        measured: Measured = here.recv()
        now = sizes(server.database_url)
        spent = measured.spent
        cores = (spent.server / measured.seconds, spent.postgres / measured.seconds) if spent else (0, 0)
        line = Line(measured.per_second, measured.latency_ms(99), resident(server.pid), now.tables_mb + now.indexes_mb)
        lines.append(line)
        print(
            f"| {number * interval:.0f} | {line.rate:.0f} | {measured.latency_ms(50):.2f} | {line.p99:.2f} | "
            f"{cores[0]:.2f} | {cores[1]:.2f} | {measured.load:.2f} | {line.rss:.0f} | {now.tables_mb:.1f} | "
            f"{now.indexes_mb:.1f} | {now.rows} | {now.dead} |",
            flush=True,
        )
    child.join()
    grown = sorted(now.by_table, key=lambda name: before.by_table.get(name, 0) - now.by_table[name])[:6]
    print(
        "Largest growth, tables with their indexes: "
        + ", ".join(f"{name} {before.by_table.get(name, 0):.1f} to {now.by_table[name]:.1f} MB" for name in grown)
    )
    return lines


def verdict(lines: list[Line], interval: float) -> bool:
    """Print the goals' results; return True if all are met."""
    rate = sum(line.rate for line in lines) / len(lines)
    print(f"write transactions: {rate:.0f} a second, goal {GOAL}: {'yes' if rate >= GOAL else 'no'}")
    steady = lines[round(STEADY_AFTER * 60 / interval) :]
    if len(steady) < 4:
        print("growth: not judged, the run is too short")
        return rate >= GOAL
    early, late = steady[: len(steady) // 2], steady[len(steady) // 2 :]
    checks: list[tuple[str, Callable[[Line], float], float]] = [
        ("p99", lambda line: line.p99, 1.25),
        ("server RSS", lambda line: line.rss, 1.05),
        ("tables and indexes", lambda line: line.megabytes, 1.1),
    ]
    met = rate >= GOAL
    for name, figure, limit in checks:
        ratio = (sum(map(figure, late)) / len(late)) / (sum(map(figure, early)) / len(early))
        print(
            f"{name}: {ratio:.2f} times as much in the last {len(late)} intervals as in the {len(early)} before, "
            f"goal at most {limit}: {'yes' if ratio <= limit else 'no'}"
        )
        met = met and ratio <= limit
    return met


def main() -> None:
    """Run the mixed work for minutes and print whether anything grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--interval", type=float, default=60, help="seconds per line")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--set", action="append", default=[], help="a setting of the server, key=value")
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        url = own_postgres(work, running)
        print(f"{settings(url)}; {options.clients} clients, {options.minutes:g} minutes")
        database = peers.database(url, "bench_ours")
        chosen = [f"--set={setting}" for setting in (RETENTION, *options.set)]
        server = Contestant(*running.enter_context(peers.ours(work / "ours", database, *chosen)), database)
        lines = run(server, options.clients, options.interval, max(1, round(options.minutes * 60 / options.interval)))
        print(f"load average {os.getloadavg()[0]:.1f} at the end")
        met = verdict(lines, options.interval)
    sys.exit(0 if met or options.minutes < 10 else "goals missed")


if __name__ == "__main__":
    main()
