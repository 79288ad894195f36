"""Transaction and lock calls per second, beside Hive's metastore 2.3.10 (Java) and pgbench on the same PostgreSQL.

    python -m benchmarks.transactions [--seconds 4] [--runs 3] [--clients 1,8,32] [--only lock] [--no-peers]
    python -m benchmarks.transactions --profile [--clients 1,8,32] [--only lock]

Everything is durable as it would be in use: fsync and synchronous_commit are on. pgbench runs the least SQL that has
the effect, one PostgreSQL transaction per call: what a design without group commit cannot surpass.

``--profile`` measures our server alone and tells what a call costs: processor time of the server and of PostgreSQL, log
written, writing transactions. These hold on a busy machine too.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg2

from benchmarks import peers, scenarios
from benchmarks.contestants import Contestant
from benchmarks.load import Measured, Scenario
from metastore.db.embedded import EmbeddedPostgres


class Row(NamedTuple):
    """A line of the table: what one client does, pgbench's script for it, transactions that are open meanwhile."""

    title: str
    scenario: Scenario
    script: str = ""
    held: int = 0


ROWS = [
    Row("open + commit", scenarios.open_commit, "open_commit"),
    Row("open + lock + heartbeat + commit", scenarios.write, "write"),
    Row("full writer", scenarios.full_write),
    Row("lock + unlock", scenarios.lock_unlock, "lock_unlock"),
    Row("heartbeat", scenarios.heartbeat),
    Row("get_open_txns", scenarios.get_open_txns, "get_open_txns"),
    Row("get_valid_write_ids", scenarios.get_valid_write_ids),
    Row("get_open_txns, 1000 open", partial(scenarios.get_open_txns, least=1000), "get_open_txns", 1000),
    Row("get_valid_write_ids, 1000 open", scenarios.get_valid_write_ids, "", 1000),
]


def counts(value: str) -> list[int]:
    return [int(part) for part in value.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--warmup", type=float, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clients", type=counts, default=[1, 8, 32], help="numbers separated by commas")
    parser.add_argument("--only", default="", help="rows whose title contains this")
    parser.add_argument("--no-peers", action="store_true", help="our server alone")
    parser.add_argument("--profile", action="store_true", help="our server alone, what a call costs")
    parser.add_argument("--database-url", help="a PostgreSQL to use instead of an own one; databases are made in it")
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        url = options.database_url or own_postgres(work, running)
        ours = peers.database(url, "bench_ours")
        contestants = {"ours": Contestant(*running.enter_context(peers.ours(work / "ours", ours)), ours)}
        rows = [row for row in ROWS if options.only in row.title]
        if options.profile:
            print(settings(url))
            profile(rows, contestants["ours"], options)
            return
        if not options.no_peers:
            try:
                hive = peers.database(url, "bench_hive")
                contestants["hive"] = Contestant(*running.enter_context(peers.hive(work / "hive", hive)), hive)
            except peers.MissingError as missing:
                print(f"without Hive's metastore: {missing}")
        plain = peers.database(url, "bench_pgbench")
        peers.run_sql(plain, (peers.PGBENCH / "schema.sql").read_text())
        print(settings(url))
        print(f"median of {options.runs} runs of {options.seconds:g} s\n"
              "Sequences per second; p50 and p99 in ms and cpu in microseconds of our server per call.")
        if "hive" in contestants:  # let the virtual machine compile
            for scenario in (scenarios.open_commit, scenarios.write, scenarios.lock_unlock, scenarios.get_open_txns):
                contestants["hive"].run(scenario, 8, 4 * options.warmup, 0)
        compare(rows, contestants, plain, options)


def own_postgres(work: Path, running: ExitStack) -> str:
    postgres = EmbeddedPostgres(work / "postgres", ends_with_us=True)
    postgres.start()
    running.callback(postgres.stop)
    return postgres.tcp_url


def settings(url: str) -> str:
    connection = psycopg2.connect(url)
    cursor = connection.cursor()
    cursor.execute("SELECT current_setting('server_version'), current_setting('fsync'), "
                   "current_setting('synchronous_commit'), current_setting('shared_buffers')")
    [(version, fsync, synchronous, buffers)] = cursor.fetchall()
    connection.close()
    return (f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}; PostgreSQL "
            f"{version}, fsync={fsync}, synchronous_commit={synchronous}, shared_buffers={buffers}")


def profile(rows: list[Row], ours: Contestant, options: argparse.Namespace) -> None:
    """What a call costs."""
    print("Per second: sequences. Latencies in ms: of a sequence. Per call: processor time of server and PostgreSQL in "
          "microseconds, log in\nbytes, writing PostgreSQL transactions. all/seq: microseconds of both and of the load "
          "generator per sequence. load: its cores.")
    print(f"{'sequence':34}{'clients':>8}{'/s':>8}{'p50':>8}{'p99':>8}{'server':>8}{'pg':>8}{'wal':>7}{'pg txns':>9}"
          f"{'all/seq':>9}{'load':>6}")
    for row in rows:
        ours.hold_open(row.held)
        for clients in options.clients:
            runs = [ours.run(row.scenario, clients, options.seconds, options.warmup) for _ in range(options.runs)]
            spent = [run.spent for run in runs if run.spent]
            calls, units = (sum(getattr(run, name) for run in runs) for name in ("calls", "units"))
            server, postgres, wal, writes = (sum(one[field] for one in spent) for field in range(4))
            load = sum(run.load * run.seconds for run in runs)
            print(f"{row.title:34}{clients:8}{middle(runs, per_second):8.0f}{middle(runs, latency(50)):8.2f}"
                  f"{middle(runs, latency(99)):8.2f}{server / calls * 1e6:8.0f}{postgres / calls * 1e6:8.0f}"
                  f"{wal / calls:7.0f}{writes / calls:9.2f}{(server + postgres + load) / units * 1e6:9.0f}"
                  f"{load / sum(run.seconds for run in runs):6.2f}", flush=True)


def middle(runs: list[Measured], figure: Callable[[Measured], float]) -> float:
    return statistics.median(map(figure, runs))


def per_second(run: Measured) -> float:
    return run.per_second


def latency(percentile: float) -> Callable[[Measured], float]:
    return lambda run: run.latency_ms(percentile)


def compare(rows: list[Row], contestants: dict[str, Contestant], plain: str, options: argparse.Namespace) -> None:
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
            found: dict[str, list[Measured]] = {name: [] for name in contestants}
            tps = []
            for _ in range(options.runs):
                for name, contestant in contestants.items():
                    found[name].append(contestant.run(scenario, clients, options.seconds, options.warmup))
                tps.append(peers.pgbench(plain, script, clients, options.seconds) if script else 0)
            rate = {name: middle(runs, per_second) for name, runs in found.items()}
            p50, p99 = (middle(found["ours"], latency(p)) for p in (50, 99))
            cpu = statistics.median(run.spent.server / run.calls * 1e6 for run in found["ours"] if run.spent)
            peer = rate.get("hive")
            beside = f"{peer:.0f} | {rate['ours'] / peer:.2f}" if peer else "- | -"
            limit = statistics.median(tps)
            beside += f" | {limit:.0f} | {rate['ours'] / limit:.2f}" if limit else " | - | -"
            print(f"| {title} | {clients} | {rate['ours']:.0f} | {p50:.2f} | {p99:.2f} | {cpu:.0f} | {beside} |",
                  flush=True)
            if peer and rate["ours"] <= peer:
                behind.append(f"{title}, {clients} clients")
    if behind:
        sys.exit("Behind Hive's metastore: " + "; ".join(behind))


if __name__ == "__main__":
    main()
