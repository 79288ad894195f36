"""PostgreSQL alone, with pgbench, in two ways. In both each call is one durable transaction.

- **least** (the scripts in least_sql/): the least SQL with the same effect, in tables of its own, without rules.
- **equal**: the statements that our server sends for the same calls when it serves one client (``equal_sql``), in our
  schema, all of them made durable. A server that did one PostgreSQL transaction for each call could not surpass it.
"""

import os
import re
import subprocess
from pathlib import Path

from benchmarks.peers import database, program, run_sql

SCRIPTS = Path(__file__).parent / "least_sql"


def run(url: str, script: Path, clients: int, seconds: float, *arguments: str, options: str = "") -> float:
    """Return the runs of a script per second, after an uncounted second in which clients connect and prepare.

    ``options`` are PostgreSQL's for the session.
    """
    done = subprocess.run(
        [
            program("pgbench"),
            "-n",
            "-c",
            str(clients),
            "-j",
            str(min(clients, 2)),
            "-P",
            "1",
            "-T",
            str(1 + max(1, round(seconds))),
            "-f",
            str(script),
            *arguments,
            url,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PGOPTIONS": options},
    )
    rates = [float(rate) for rate in re.findall(r"^progress: \S+ s, (\S+) tps", done.stderr, re.MULTILINE)]
    if rates[1:] and not done.returncode:
        return sum(rates[1:]) / len(rates[1:])
    raise RuntimeError(f"pgbench: {done.stdout}{done.stderr}"[-1500:])


class Least:
    """The least SQL with the same effect, in a database of its own."""

    def __init__(self, server_url: str) -> None:
        self.url = database(server_url, "bench_least")
        run_sql(self.url, (SCRIPTS / "schema.sql").read_text())

    def hold_open(self, count: int) -> None:
        """Put ``count`` open transactions into the database."""
        run_sql(
            self.url,
            "TRUNCATE txns, locks, components, completed; INSERT INTO txns (state, started, "
            "heartbeat, owner, host, agent) SELECT 'open', now(), now(), 'ann', 'node1', 'bench' "
            f"FROM generate_series(1, {count}); ANALYZE",
        )

    def run(self, script: str, clients: int, seconds: float) -> float:
        """Run a script of the smallest possible schema. Return its rate."""
        return run(self.url, SCRIPTS / f"{script}.sql", clients, seconds, "-M", "prepared")
