"""Transaction and lock calls: rate, latency and cost, beside Hive's metastores 2.3.10 and 4.2.0 and pgbench.

    python -m benchmarks.transactions [--seconds 2] [--runs 3] [--clients 1,8,32] [--only lock] [--peers hive_4_2,equal]
    python -m benchmarks.transactions --profile [--only lock]     a few seconds: what a call of ours costs, no peers
    python -m benchmarks.transactions --no-peers --processes 2 --clients 32,64     several server processes on one port

All of them use one PostgreSQL, as durable as in production: fsync and synchronous_commit are on. Contestants take turns
within each row, so that all of them meet the same disturbance. Processor time per call (of the server, and of all
processes of PostgreSQL) hardly depends on other work of the machine; rates do.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks import hive, peers, scenarios
from benchmarks.contestants import MANY_OPEN, Contestant, Hive23, Hive42
from benchmarks.equal_sql import EqualSql, UnlikeError
from benchmarks.load import Measured
from benchmarks.pgbench import Least
from benchmarks.rows import EQUAL, HIVE_2_3, HIVE_4_2, ROWS, Row, times, verdict
from metastore.db.embedded import EmbeddedPostgres

LEAST = "least"
PEERS = {HIVE_2_3: "Hive 2.3.10", HIVE_4_2: "Hive 4.2.0", EQUAL: "pgbench, equal SQL", LEAST: "pgbench, least SQL"}
LARGE = 1000
"""The number of open transactions above which pgbench is left out: the Java peers set the goal."""


class Costs(NamedTuple):
    """The cost of a call: processor time in microseconds, and bytes."""

    server: float
    postgres: float
    wal: float
    writes: float
    whole_sequence: float
    """The cost of one sequence for server, PostgreSQL and load generator, by which the machine's cores are divided."""
    load: float
    """The cores that the load generator keeps busy."""

    @classmethod
    def of(cls, runs: list[Measured]) -> "Costs":
        """Add up the costs of runs, a call or a sequence."""
        spent = [run.spent for run in runs if run.spent]
        calls, units = (max(1, sum(getattr(run, name) for run in runs)) for name in ("calls", "units"))
        server, postgres, wal, writes = (sum(share[field] for share in spent) for field in range(4))
        load = sum(run.load * run.seconds for run in runs)
        return cls(
            server / calls * 1e6,
            postgres / calls * 1e6,
            wal / calls,
            writes / calls,
            (server + postgres + load) / units * 1e6,
            load / sum(run.seconds for run in runs),
        )


def main() -> None:
    """Start the servers and measure each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--only", default="", help="rows whose title contains this; several: separated by commas")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"which of {', '.join(PEERS)}")
    parser.add_argument("--no-peers", dest="peers", action="store_const", const="", help="our server alone")
    parser.add_argument("--small", action="store_true", help=f"leave out states of more than {LARGE} transactions")
    parser.add_argument("--profile", action="store_true", help="our server alone: what a call costs; small states")
    parser.add_argument("--processes", type=int, default=1, help="of our server, on one port")
    parser.add_argument("--database-url", help="a PostgreSQL to use instead of an own one; databases are made in it")
    options = parser.parse_args()
    if options.profile:
        options.peers = ""
    rows = [
        row
        for row in ROWS
        if any(part in row.title for part in options.only.split(","))
        and (max(row.held, row.finished) <= LARGE or not (options.small or options.profile))
    ]
    with ExitStack() as running:
        Comparison(options, running).run(rows)


def own_postgres(work: Path, running: ExitStack) -> str:
    """Start an embedded PostgreSQL below ``work`` and return its URL."""
    postgres = EmbeddedPostgres(work / "postgres", ends_with_us=True)
    postgres.start()
    running.callback(postgres.stop)
    return postgres.tcp_url


def settings(url: str) -> str:
    """Return the sentence that says on what was measured."""
    [(version, fsync, synchronous, buffers)] = peers.run_sql(
        url,
        "SELECT current_setting('server_version'), current_setting('fsync'), "
        "current_setting('synchronous_commit'), current_setting('shared_buffers')",
    )
    return (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}; PostgreSQL "
        f"{version}, fsync={fsync}, synchronous_commit={synchronous}, shared_buffers={buffers}"
    )


class Comparison:
    """The contestants and the table."""

    def __init__(self, options: argparse.Namespace, running: ExitStack) -> None:
        self.options = options
        self.work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        self.work.chmod(0o711)  # PostgreSQL does not run as root
        self.url = options.database_url or own_postgres(self.work, running)
        self.servers: dict[str, Contestant] = {}
        self.least: Least | None = None
        self.equal: EqualSql | None = None
        self.start(running, options.peers.split(","))

    def start(self, running: ExitStack, names: list[str]) -> None:
        """Start our server, and those peers of ``names`` that can be fetched."""
        how = [f"--set={key}={value}" for key, value in MANY_OPEN.items()]
        if self.options.processes > 1:
            how += ["--processes", str(self.options.processes)]
        url = peers.database(self.url, "bench_ours")
        self.servers["ours"] = Contestant(*running.enter_context(peers.ours(self.work / "ours", url, *how)), url)
        for name, kind, start in ((HIVE_2_3, Hive23, hive.hive_2_3), (HIVE_4_2, Hive42, hive.hive_4_2)):
            if name in names:
                url = peers.database(self.url, f"bench_{name}")
                try:
                    self.servers[name] = kind(*running.enter_context(start(self.work / name, url, MANY_OPEN)), url)
                except hive.MissingError as missing:
                    print(f"without {PEERS[name]}: {missing}")
        if LEAST in names:
            self.least = Least(self.url)
        if EQUAL in names:
            self.equal = running.enter_context(EqualSql(self.work / "equal", self.url))

    def run(self, rows: list[Row]) -> None:
        """Measure every row and print its line."""
        options = self.options
        print(
            f"{settings(self.url)}; median of {options.runs} runs of {options.seconds:g} s\n"
            "Per second: sequences. p50, p99: ms of a sequence. server, pg: processor time in microseconds per call. "
            "load: cores that\nthe load generator keeps busy.",
            flush=True,
        )
        for name, server in self.servers.items():
            if name != "ours":  # a first run lets the virtual machine compile
                for scenario in (
                    scenarios.open_commit,
                    scenarios.write,
                    scenarios.lock_unlock,
                    scenarios.get_open_txns,
                    *((scenarios.full_write,) if name == HIVE_4_2 else ()),
                ):
                    server.run(scenario, 8, 8 * options.warmup, 0)
        others = [
            name
            for name in PEERS
            if name in {*self.servers, *([LEAST] if self.least else ()), *([EQUAL] if self.equal else ())}
        ]
        if options.profile:
            print(
                f"{'sequence':34}{'clients':>8}{'/s':>8}{'p50':>8}{'p99':>8}{'server':>8}{'pg':>8}{'wal':>7}"
                f"{'pg txns':>9}{'all/seq':>9}{'load':>6}"
            )
        else:
            print(
                "| sequence | clients | ours /s | p50 | p99 | server | pg | load |"
                + "".join(f" {PEERS[name]} /s | x |" for name in others)
                + " goal met |"
            )
            print("|---|--:|--:|--:|--:|--:|--:|--:|" + "--:|--:|" * len(others) + "---|")
        state = (0, 0)
        behind = []
        for row in rows:
            state = self.bring(row, state)
            script = self.script(row)
            for clients in options.clients:
                runs, rates = self.measure(row, clients, script)
                if options.profile:
                    self.print_profile(row, clients, runs)
                else:
                    behind += self.print_line(row, clients, runs, rates, others)
        if behind:
            sys.exit("Behind Hive's metastore: " + "; ".join(behind))

    def bring(self, row: Row, state: tuple[int, int]) -> tuple[int, int]:
        """Bring all contestants into the state that a row asks for; return the state."""
        wanted = (row.held, row.finished)
        for server in self.servers.values():
            if row.held < state[0]:
                server.hold_open(0)
            server.hold_open(row.held)
            if row.finished > state[1]:
                server.finish(row.finished)
        if row.held <= LARGE:
            if self.least:
                self.least.hold_open(row.held)
            if self.equal:
                self.equal.server.hold_open(row.held)
        return wanted

    def script(self, row: Row) -> Path | None:
        """Return the pgbench script with the SQL of the row; None if there is none."""
        if self.equal is None or row.held > LARGE or row.finished:
            return None
        try:
            return self.equal.script(row.scenario)
        except UnlikeError as error:
            print(f"no equal SQL for {row.title}: {error}", file=sys.stderr)
            return None

    def measure(self, row: Row, clients: int, script: Path | None) -> tuple[list[Measured], dict[str, float]]:
        """Return our runs, and the rates of all others; contestants take turns."""
        seconds, warmup = (row.patience * time for time in (self.options.seconds, self.options.warmup))
        ours: list[Measured] = []
        rates: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(self.options.runs):
            for name, server in self.servers.items():
                if name == HIVE_2_3 and row.since_3_0:
                    continue
                run = server.run(row.scenario, clients, seconds, warmup)
                rates[name].append(run.per_second)
                ours += [run] if name == "ours" else []
            if self.equal and script:
                try:
                    rates[EQUAL].append(self.equal.run(script, clients, seconds))
                except (RuntimeError, UnlikeError) as error:
                    print(f"no equal SQL for {row.title}: {error}", file=sys.stderr)
                    script = None
            if self.least and row.least and row.held <= LARGE and not row.finished:
                rates[LEAST].append(self.least.run(row.least, clients, seconds))
        return ours, {name: statistics.median(measured) for name, measured in rates.items() if measured}

    @staticmethod
    def print_profile(row: Row, clients: int, runs: list[Measured]) -> None:
        """Print what our server's runs cost."""
        costs = Costs.of(runs)
        print(
            f"{row.title:34}{clients:8}{middle(runs, per_second):8.0f}{middle(runs, latency(50)):8.2f}"
            f"{middle(runs, latency(99)):8.2f}{costs.server:8.0f}{costs.postgres:8.0f}{costs.wal:7.0f}"
            f"{costs.writes:9.2f}{costs.whole_sequence:9.0f}{costs.load:6.2f}",
            flush=True,
        )

    @staticmethod
    def print_line(
        row: Row, clients: int, runs: list[Measured], rates: dict[str, float], others: list[str]
    ) -> list[str]:
        """Print a line of the table; return the row if a Java metastore is faster."""
        costs, ours = Costs.of(runs), rates.pop("ours")
        beside = "".join(
            f" {rates[name]:.0f} | {times(ours, rates[name]):.2f} |" if name in rates else " - | - |" for name in others
        )
        print(
            f"| {row.title} | {clients} | {ours:.0f} | {middle(runs, latency(50)):.2f} | "
            f"{middle(runs, latency(99)):.2f} | {costs.server:.0f} | {costs.postgres:.0f} | {costs.load:.2f} |"
            f"{beside} {verdict(row, ours, rates) if clients == 8 else ''} |",
            flush=True,
        )
        slower = any(rates.get(name, 0) >= ours for name in (HIVE_2_3, HIVE_4_2))
        return [f"{row.title}, {clients} clients"] if slower else []


def middle(runs: list[Measured], figure: Callable[[Measured], float]) -> float:
    """Return the median of ``figure`` of the runs."""
    return statistics.median(map(figure, runs))


def per_second(run: Measured) -> float:
    """Return the rate of a run."""
    return run.per_second


def latency(percentile: float) -> Callable[[Measured], float]:
    """Return the function that takes this percentile of a run's latencies."""
    return lambda run: run.latency_ms(percentile)


if __name__ == "__main__":
    main()
