"""The rows of the comparison: the clients' work, the state of the data, and the goal for 8 clients."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from benchmarks import scenarios
from benchmarks.load import Scenario

JAVA, HIVE_2_3, HIVE_4_2, EQUAL = "java", "hive_2_3", "hive_4_2", "equal"
"""The base of a goal; JAVA is the faster of the two."""


class Row(NamedTuple):
    """One kind of work."""

    title: str
    scenario: Scenario
    goals: dict[str, float]
    least: str = ""
    """The pgbench script with the least SQL for it, if there is any."""
    held: int = 0
    """The number of transactions that are open meanwhile."""
    finished: int = 0
    """The number of writers that have committed since the oldest of those was opened."""
    since_3_0: bool = False
    """True for calls that Hive 2.3 does not have."""

    @property
    def patience(self) -> float:
        """The factor by which to measure longer than other rows: in large states a call can take a second."""
        return 3 if max(self.held, self.finished) > 10_000 else 1


def snapshots(state: str, held: int, finished: int = 0) -> list[Row]:
    """Return the rows of snapshots while ``held`` transactions are open."""
    return [
        Row(
            f"get_open_txns{state}",
            partial(scenarios.get_open_txns, least=held),
            {JAVA: 2},
            "get_open_txns",
            held,
            finished,
        ),
        Row(
            f"get_valid_write_ids{state}", scenarios.get_valid_write_ids, {JAVA: 2}, "", held, finished, since_3_0=True
        ),
    ]


ROWS = [
    Row("open + commit", scenarios.open_commit, {JAVA: 5, EQUAL: 1}, "open_commit"),
    Row("open + lock + heartbeat + commit", scenarios.write, {JAVA: 6, HIVE_4_2: 12}, "write"),
    Row("full writer", scenarios.full_write, {HIVE_4_2: 12}, since_3_0=True),
    Row("lock + unlock", scenarios.lock_unlock, {JAVA: 5}, "lock_unlock"),
    Row("heartbeat", scenarios.heartbeat, {JAVA: 5}),
    *snapshots("", 0),
    *snapshots(", 1 k open", 1000),
    *snapshots(", 10 k open", 10_000),
    *snapshots(", 100 k open", 100_000),
    *snapshots(", 1 M finished", 1, 1_000_000),
]


def times(ours: float, theirs: float) -> float:
    """Return the ratio of the rates; a peer without an answer counts as one answer in ten seconds."""
    return ours / max(theirs, 0.1)


def verdict(row: Row, ours: float, peers: Mapping[str, float]) -> str:
    """Return ``yes`` if every goal is met, else ``no``, and the ratio of each."""
    java = [rate for name, rate in peers.items() if name in {HIVE_2_3, HIVE_4_2}]
    rates = {**peers, **({JAVA: max(java)} if java else {})}
    if not all(name in rates for name in row.goals):
        return "not measured"
    reached = {name: times(ours, rates[name]) for name in row.goals}
    reached_goals = ", ".join(f"{reached[name]:.1f} of {goal:g} x {name}" for name, goal in row.goals.items())
    return f"{'yes' if all(reached[name] >= goal for name, goal in row.goals.items()) else 'no'}: {reached_goals}"
