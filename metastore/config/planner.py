"""The planner: the port that it listens on, and the address that clients get."""

from dataclasses import dataclass

from metastore.config import values
from metastore.config.keys import key
from metastore.config.values import integer


@dataclass(frozen=True)
class PlannerSettings:
    """The planner of reads and writes for engines."""

    enabled: bool = key(
        values.FLAG,
        "metastore.planner.enabled",
        "true",
        "Run a planner beside each server: a process of its own, started when the first engine connects to it. "
        "Hive: no such key.",
    )
    port: int = key(
        integer(0),
        "metastore.planner.port",
        "0",
        "Port of the planner; 0: a free one, which engines learn from the metastore. Several processes of one server "
        "take the next ones. Hive: no such key.",
    )
    uri: str = key(
        values.TEXT,
        "metastore.planner.uri",
        "",
        "Where engines are told that the planner is, like https://planner.example:9085, when it is not beside this "
        "server, which starts none then. Hive: no such key.",
    )
    connections: int = key(
        integer(1),
        "metastore.planner.connections",
        "500",
        "Most connections to one planner. For one more the connection is closed that has been without a call for "
        "longest; where all have calls in work, the new one. Hive: no such key.",
    )
    threads: int = key(
        integer(1),
        "metastore.planner.threads",
        "8",
        "Scans and writes that one planner plans at a time; the others wait, in turn by address. Hive: no such key.",
    )
