"""A month of compactions in a minute: Hive's order of the queue and ours, over the same writes.

    python -m benchmarks.compaction_policy [--days 30] [--load NAME ...] [--recorded postgresql://...]

Nothing is written. A clock jumps from event to event: transactions add deltas, the Initiator runs every five minutes,
Workers read and write a fixed number of bytes a second. The service's own functions decide which compactions are due,
what they gain, and which comes next (`initiating.rules`, `queue.rules.turns`). Hive's policy has the same thresholds,
and its Workers take the oldest request. Both see the same tables, the same writes, and the same number of Workers.

Read amplification: the cost of a read, divided by its cost if the table were one base at that moment; the mean over all
reads of the month. A read costs its bytes, and `OPENING` more for each directory that it opens. Rewritten: the bytes
that compactions wrote.

With --recorded the writes that a database remembers are played again, once (`recorded_load`).
"""

import argparse
import heapq
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from benchmarks import recorded_load
from metastore.compaction.initiating.rules import Thresholds, benefit, due
from metastore.compaction.inventory.rules import Measured
from metastore.compaction.queue.rules.requests import CompactionType
from metastore.compaction.queue.rules.turns import OPENING, head_start, over_share

MB, GB = 10**6, 10**9
START = datetime(2026, 1, 1, tzinfo=UTC)
CYCLE_S = 300.0
"""The seconds of hive.compactor.check.interval."""
THRESHOLDS = Thresholds(10, 0.1)
TABLE_SHARE = 0.5


@dataclass
class Table:
    """A table or partition. ``every_s``: between two transactions of ``delta`` bytes each; ``reads``: in an hour."""

    name: str
    base: float
    delta: float
    every_s: float
    reads: float
    first_s: float = 0.0
    moments: tuple[float, ...] = ()
    """The times of the writes; if empty, one every ``every_s``."""
    deletes: bool = False
    """True if each transaction also leaves a delete delta, a tenth of its bytes, and the base does not grow."""
    deltas: list[float] = field(default_factory=list)
    delete_deltas: int = 0
    queued: bool = False
    at: float = 0.0
    cost: float = 0.0
    counted: float = 0.0

    @property
    def group(self) -> str:
        """The table of a partition."""
        return self.name.partition("/")[0]

    def measured(self) -> Measured:
        """Return the sizes that the Initiator would measure."""
        return Measured(int(self.base), int(sum(self.deltas)), len(self.deltas), self.delete_deltas)

    def read_until(self, at: float) -> None:
        """Count the reads since the last call; nothing has changed in between."""
        reads = (at - self.at) / 3600 * self.reads
        size = self.base + sum(self.deltas)
        compacted = self.base if self.deletes and self.base else size
        self.cost += reads * (size + OPENING * (bool(self.base) + len(self.deltas))) / (compacted + OPENING)
        self.counted += reads
        self.at = at

    def writes(self) -> Iterator[float]:
        """Yield the times of the writes."""
        if self.moments:
            return iter(self.moments)
        return (self.first_s + number * self.every_s for number in count())

    def write(self) -> None:
        """Add the deltas of one write."""
        self.deltas.append(self.delta)
        if self.deletes:
            self.deltas.append(self.delta / 10)
            self.delete_deltas += 1


class Load(NamedTuple):
    """A load to simulate. ``rate``: bytes that a Worker reads and writes in a second; ``start_s``: of a job."""

    name: str
    about: str
    tables: Callable[[], Iterator[Table]]
    workers: int
    rate: float = 50 * MB
    start_s: float = 10.0


class Waiting(NamedTuple):
    """A request in the queue."""

    table: Table
    kind: CompactionType
    number: int
    since: float
    turn: datetime


class Result(NamedTuple):
    """The outcome of a simulated month."""

    amplification: float
    rewritten: float
    jobs: int
    busy: float
    longest_s: float


class Policy(NamedTuple):
    """A policy: the key by which requests are ordered, and whether those with their full share come last."""

    name: str
    key: Callable[[Waiting], Any]
    shares: bool


POLICIES = [
    Policy("Hive's: the oldest first", lambda request: request.number, shares=False),
    Policy("ours: benefit, age, share", lambda request: (request.turn, request.number), shares=True),
]
"""Our policy, as `queue.store` orders by it."""


class Simulation:
    """A simulation of one policy over one load."""

    def __init__(self, load: Load, policy: Policy) -> None:
        self.load, self.policy = load, policy
        self.tables = list(load.tables())
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.numbers = 0
        self.written: dict[int, Table] = {}
        self.waiting: list[tuple[Any, Waiting]] = []
        self.working: list[Table] = []
        self.rewritten = self.busy = self.longest = 0.0
        self.jobs = 0

    def at(self, seconds: float, what: Callable[[float], None]) -> None:
        """Schedule ``what`` at ``seconds``."""
        self.numbers += 1
        heapq.heappush(self.events, (seconds, self.numbers, what))

    def run(self, days: float) -> Result:
        """Simulate ``days`` days. Return what they cost."""
        end = days * 86400
        for table in self.tables:
            self.write_later(table, table.writes())
        self.at(CYCLE_S, self.initiate)
        while self.events and self.events[0][0] <= end:
            now, _, what = heapq.heappop(self.events)
            what(now)
        for table in self.tables:
            table.read_until(end)
        for _, request in self.waiting:
            self.longest = max(self.longest, end - request.since)
        cost, reads = sum(table.cost for table in self.tables), sum(table.counted for table in self.tables)
        return Result(cost / reads, self.rewritten, self.jobs, self.busy / (end * self.load.workers), self.longest)

    def write_later(self, table: Table, moments: Iterator[float]) -> None:
        """Schedule the next of the writes at ``moments``."""
        moment = next(moments, None)
        if moment is not None:
            self.at(moment, partial(self.write, table, moments))

    def write(self, table: Table, moments: Iterator[float], now: float) -> None:
        """Write to the table and schedule its next write."""
        table.read_until(now)
        table.write()
        self.written[id(table)] = table
        self.write_later(table, moments)

    def initiate(self, now: float) -> None:
        """Queue compactions of the tables that are due, and schedule the next cycle."""
        candidates, self.written = self.written, {}
        for key, table in candidates.items():
            if table.queued:
                self.written[key] = table  # checked again, as a table whose compaction is under way
                continue
            measured = table.measured()
            verdict = due(measured, THRESHOLDS, insert_only=False)
            if verdict.type is None:
                continue
            table.queued = True
            gain = benefit(verdict.type, measured, table.reads)
            turn = START + timedelta(seconds=now) - head_start(gain)
            self.numbers += 1
            request = Waiting(table, verdict.type, self.numbers, now, turn)
            heapq.heappush(self.waiting, (self.policy.key(request), request))
        self.assign(now)
        self.at(now + CYCLE_S, self.initiate)

    def assign(self, now: float) -> None:
        """Give waiting requests to the Workers that are free."""
        while self.waiting and len(self.working) < self.load.workers:
            request = self.next()
            self.longest = max(self.longest, now - request.since)
            table, measured = request.table, request.table.measured()
            self.working.append(table)
            read = measured.delta_size + (measured.base_size if request.kind is CompactionType.MAJOR else 0)
            seconds = self.load.start_s + 2 * read / self.load.rate
            self.busy += seconds
            self.at(now + seconds, partial(self.done, request, measured))

    def next(self) -> Waiting:
        """Return the next request to run, without those that have their full share while others wait."""
        crowded = set(over_share((table.group for table in self.working), TABLE_SHARE)) if self.policy.shares else set()
        passed = []
        while self.waiting and self.waiting[0][1].table.group in crowded:
            passed.append(heapq.heappop(self.waiting))
        chosen = heapq.heappop(self.waiting) if self.waiting else passed.pop(0)
        for each in passed:
            heapq.heappush(self.waiting, each)
        return chosen[1]

    def done(self, request: Waiting, measured: Measured, now: float) -> None:
        """Replace the deltas that were merged and free the Worker."""
        table = request.table
        table.read_until(now)
        merged, table.deltas = table.deltas[: measured.deltas], table.deltas[measured.deltas :]
        table.delete_deltas -= measured.delete_deltas
        if request.kind is CompactionType.MAJOR:
            if not table.deletes or not table.base:
                table.base += sum(merged)
            self.rewritten += table.base
        else:
            self.rewritten += sum(merged)
            deletes = sum(merged) / 11 if measured.delete_deltas else 0.0
            table.delete_deltas += measured.delete_deltas > 0
            table.deltas = [sum(merged) - deletes, *([deletes] if deletes else []), *table.deltas]
        table.queued = False
        self.jobs += 1
        self.working.remove(table)
        self.assign(now)


def spread(number: int, low: float, high: float, steps: int = 16) -> float:
    """Return a value between low and high, in equal factors; its order does not follow the number's."""
    return float(low * (high / low) ** ((number * 7 % steps) / (steps - 1)))


def trickle() -> Iterator[Table]:
    """Return many tables with a small write every minute."""
    for number in range(120):
        yield Table(
            f"d.t{number}",
            spread(number, GB / 2, 40 * GB),
            MB,
            60 + number % 7 * 10,
            spread(number // 3, 0.2, 400),
            number,
        )


def hourly_merges() -> Iterator[Table]:
    """Return tables into which a MERGE writes every hour."""
    for number in range(160):
        base = spread(number, GB / 4, 30 * GB)
        yield Table(
            f"d.t{number}", base, base / 400, 3600, spread(number // 5, 0.2, 400), 60 + number / 10, deletes=True
        )


def hot_and_cold() -> Iterator[Table]:
    """Return a few tables with many writes and reads, and many with few."""
    for number in range(200):
        yield Table(f"d.hot/day={number}", GB, MB / 2, 120, 20, number / 2)
    for number in range(5000):
        yield Table(
            f"d.cold{number}",
            spread(number, GB / 20, 2 * GB),
            MB,
            7200 + number % 97 * 60,
            spread(number // 2, 0.1, 200),
            number * 7.0,
        )


def daily_deletes() -> Iterator[Table]:
    """Return tables with deletes four times a day."""
    for number in range(400):
        base = spread(number, GB / 4, 60 * GB)
        yield Table(
            f"d.t{number}", base, base / 100, 86400 / 4, spread(number // 5, 0.2, 400), 3600 + number / 10, deletes=True
        )


LOADS = [
    Load("trickle", "120 tables, an insert of 1 MB a minute", trickle, 3),
    Load("enough Workers", "the same", trickle, 12),
    Load("merges", "160 tables, an hourly MERGE of 0.25 %, all at the full hour", hourly_merges, 3),
    Load("hot", "one table of 200 busy partitions, 5,000 others", hot_and_cold, 3),
    Load("deletes", "400 tables, 1 % changed four times a day", daily_deletes, 6),
]


def recorded(record: recorded_load.Record) -> Load:
    """Return the load of a recorded database."""
    commits = sum(len(each.moments) for each in record.written)
    about = f"{len(record.written)} tables and partitions, {commits} writes in {record.days:.1f} days"

    def tables() -> Iterator[Table]:
        for each in record.written:
            yield Table(each.name, each.base, each.delta, 0, each.reads, moments=each.moments, deletes=each.deletes)

    return Load("recorded", about, tables, record.workers)


def main() -> int:
    """Simulate each load under both orders and print a line for each. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--load", nargs="*", choices=[load.name for load in LOADS], default=[])
    parser.add_argument("--recorded", metavar="URL", help="replay the writes that this database remembers")
    options = parser.parse_args()
    loads, days = LOADS, options.days
    if options.recorded:
        record = recorded_load.record(options.recorded)
        if not record.days:
            sys.exit("This database remembers no writes over any time: there is nothing to replay.")
        loads, days = [recorded(record)], min(days, record.days)
    print(
        "| load | Workers | queue | read amplification | rewritten, TB | compactions | Workers busy | longest wait, h |"
    )
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for load in loads:
        if options.load and load.name not in options.load:
            continue
        for policy in POLICIES:
            result = Simulation(load, policy).run(days)
            cells = [
                f"{load.name}: {load.about}",
                load.workers,
                policy.name,
                f"{result.amplification:.3f}",
                f"{result.rewritten / 1e12:.1f}",
                result.jobs,
                f"{result.busy:.0%}",
                f"{result.longest_s / 3600:.1f}",
            ]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
