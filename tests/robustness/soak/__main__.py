"""``python -m tests.robustness.soak``: minutes of everything at once; exits with 1 when a promise was broken.

    python -m tests.robustness.soak --minutes 30 --seed 7
"""

import argparse
import ctypes
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from thrift.Thrift import TException

from metastore.client import MetastoreClient
from metastore.errors import MetastoreError
from metastore.telemetry import logs
from tests.robustness.harness.processes import RunFailedError
from tests.robustness.soak.role import note_request
from tests.robustness.soak.stage import Stage
from tests.robustness.soak.tables import LEASE_S, TXN_TIMEOUT_S
from tests.robustness.soak.verdict import Verdict

TABLES = ("facts/w=0", "facts/w=1", "flat", "accounts", "streamed", "on_disk", "churn_w0_0_renamed", "churn_w1_0", "churn_w1_1_renamed")


_PR_CAPBSET_DROP, _PAST_PERMISSIONS = 24, (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


class Trouble:
    """Does harm, one thing after the other, until it is told to stop; and asks for compactions meanwhile."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage, self.random, self.counts = stage, Random(seed), Counter[str]()
        self.stopping = threading.Event()
        self.kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "kill a server": (4, lambda: self._one(stage.servers).signal(signal.SIGKILL)),
            "pause a server": (2, lambda: self._pause(self._one(stage.servers), self.random.uniform(1, 8))),
            "kill a worker": (4, lambda: self._one(stage.workers).signal(signal.SIGKILL)),
            "pause a worker": (3, lambda: self._pause(self._one(stage.workers), self.random.choice((2, LEASE_S + 5)))),
            "kill a driver": (4, lambda: self._one(stage.drivers).signal(signal.SIGKILL)),
            "pause a driver": (3, lambda: self._pause(self._one(stage.drivers), self.random.choice((3, TXN_TIMEOUT_S + 5)))),
            "kill PostgreSQL": (2, stage.postgres.kill),
            # A heartbeat may have been due right before: with more, snapshots would be lost that their readers keep alive.
            "pause PostgreSQL": (2, lambda: self._pause(stage.postgres, self.random.uniform(1, TXN_TIMEOUT_S / 4))),
        }
        self.threads = [threading.Thread(target=self._harm), threading.Thread(target=self._request)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def _one(self, among: list[Any]) -> Any:
        return self.random.choice(among)

    def _pause(self, process: Any, seconds: float) -> None:
        """For so long; a supervisor of ours does not wake it earlier."""
        process.paused = True
        process.signal(signal.SIGSTOP)
        self.stopping.wait(seconds)
        process.signal(signal.SIGCONT)
        process.paused = False

    def _harm(self) -> None:
        names = list(self.kinds)
        weights = [weight for weight, _ in self.kinds.values()]
        while not self.stopping.wait(self.random.uniform(8, 25)):
            [name] = self.random.choices(names, weights)
            with suppress(ProcessLookupError):
                self.kinds[name][1]()
                self.counts[name] += 1

    def _request(self) -> None:
        random = Random(f"{self.random.random()}/requests")
        while not self.stopping.wait(random.uniform(1, 10)):
            with suppress(MetastoreError, TException, OSError), MetastoreClient(self.stage.uris, user="soak-requester") as client:
                kind = random.choice(("MINOR", "MINOR", "MAJOR", "REBALANCE"))
                name, _, partition = random.choice(TABLES).partition("/")
                answer = client.compact2(client.types.CompactionRequest(
                    dbname="soak", tablename=name, partitionname=partition or None, type=client.types.CompactionType._NAMES_TO_VALUES[kind]))
                self.counts[f"{kind} {'accepted' if answer.accepted else 'refused'}"] += 1
                if answer.accepted and not name.startswith("churn"):
                    note_request(self.stage.directory, answer.id)
                if answer.accepted and random.random() < 0.1:
                    client.abort_Compactions(client.types.AbortCompactionRequest(compactionIds=[answer.id]))
                    self.counts["aborts of compactions"] += 1


def corrupt(directory: Path) -> None:
    """Overwrite a quarter of a file of soak.broken."""
    [victim, *_] = sorted(directory.rglob("broken/delta_*/bucket_*"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 4:len(content) // 2] = b"\xff" * (len(content) // 2 - len(content) // 4)
    victim.write_bytes(content)


def obey_permissions() -> None:
    """Forbid processes that start from now on to write where the owner may not, even as root."""
    for capability in _PAST_PERMISSIONS:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.soak")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave what it wrote, for people")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    logs.configure("critical", "console")
    anomalies: list[str] = ["it did not come to its end"]
    obey_permissions()
    stage = Stage()
    try:
        stage.start(options.seed)
        corrupt(stage.directory)
        with MetastoreClient(stage.uris) as client:
            client.compact2(client.types.CompactionRequest(dbname="soak", tablename="broken", type=client.types.CompactionType.MAJOR))
        trouble = Trouble(stage, options.seed)
        trouble.start()
        began = monotonic()
        patiently(lambda: has_anomalies(stage), options.minutes * 60)
        trouble.stop()
        print(f"harm for {monotonic() - began:.0f} s:", dict(sorted(trouble.counts.items())), flush=True)
        anomalies = settle(stage)
    except RunFailedError as error:
        anomalies = [f"the run itself: {error}"]
    finally:
        stage.close(keep=options.keep or bool(anomalies))
    for text in anomalies:
        print("BROKEN:", text, flush=True)
    print(f"soak of {options.minutes} min, seed {options.seed}: {len(anomalies)} promises broken"
          f"{f', kept in {stage.directory}' if anomalies else ''}", flush=True)
    return bool(anomalies)


def settle(stage: Stage) -> list[str]:
    """Let everything end, and judge. What drivers saw comes first."""
    (stage.directory / "stop").touch()
    patiently(lambda: all(driver.is_done for driver in stage.drivers) or has_anomalies(stage), 600)
    print("load:", *os.getloadavg(), flush=True)
    said = stage.directory / "anomalies"
    anomalies = said.read_text().splitlines() if said.exists() else []
    anomalies += [f"{driver.role} did not come to its end" for driver in stage.drivers if not driver.is_done]
    for driver in stage.drivers:
        counts = stage.directory / f"{driver.role}.counts"
        total = Counter(counts.read_text().splitlines()) if counts.exists() else Counter()
        print(f"{driver.role}, {driver.starts} starts:", dict(sorted(total.items())), flush=True)
    return anomalies or Verdict(stage).anomalies()


def has_anomalies(stage: Stage) -> bool:
    return (stage.directory / "anomalies").exists()


def patiently(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to be so in time."""
    ends_at = monotonic() + seconds
    while not condition():
        if monotonic() > ends_at:
            return False
        threading.Event().wait(0.5)
    return True


if __name__ == "__main__":
    sys.exit(main())
