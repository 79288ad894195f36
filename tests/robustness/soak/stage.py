"""What a soak runs on: PostgreSQL, two servers, three workers, three Spark drivers, a holder of snapshots, and a disk of its own."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.robustness.harness.processes import Compactor, Postgres, Process, Server, remove, scratch, wait_for
from tests.robustness.soak.tables import LEASE_S, TXN_TIMEOUT_S, WRITERS

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A session that lives for minutes, on few cores, is there sooner."""
SETTINGS = {
    "hive.txn.timeout": f"{TXN_TIMEOUT_S:.0f}s", "metastore.compactor.worker.lease": f"{LEASE_S:.0f}s", "hive.compactor.check.interval": "5s",
    "hive.compactor.delta.num.threshold": "6", "hive.compactor.abortedtxn.threshold": "3",
    "hive.compactor.initiator.failed.retry.time": "1s", "hive.compactor.cleaner.retry.retentionTime": "2s",
    "hive.compactor.cleaner.retention.time.seconds": "5s", "hive.compactor.cleaner.retry.maxattempts": "10", "metastore.compactor.spark.master": "local[1]",
    "metastore.compactor.spark.conf": f"spark.driver.memory=700m,spark.driver.extraJavaOptions={JAVA_OPTIONS}",
    **dict.fromkeys((f"hive.compactor.history.retention.{state}" for state in ("succeeded", "failed", "refused", "did.not.initiate")), "100")}
ROLES = (*WRITERS, "reader", "holder")
DISK_MB = 6


class SoakServer(Server):
    """``metastore serve`` as users have it, which compacts nothing itself."""

    module = ("metastore",)


class SoakWorker(Compactor):
    """``metastore worker`` with its Spark jobs."""

    module = ("metastore",)


class Driver:
    """A Spark driver that is started again until it has said that it is done."""

    def __init__(self, role: str, uris: str, seed: int, directory: Path) -> None:
        self.role, self.directory = role, directory
        self.command = [sys.executable, "-m", "tests.robustness.soak.roles", role, uris, str(seed), str(directory)]
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_up, daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return (self.directory / f"{self.role}.done").exists()

    def signal(self, number: int) -> None:
        """To the driver and its JVM."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def _keep_up(self) -> None:
        while not self._stopping.is_set():
            if not self.is_done and (self.process is None or self.process.poll() is not None):
                if self.process is not None:
                    self._kill_rest()
                with (self.directory / f"{self.role}.log").open("ab") as log:
                    self.process = subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True,
                                                    env={**os.environ, "HADOOP_USER_NAME": f"soak-{self.role}"})
                self.starts += 1
            self._stopping.wait(0.3)

    def _kill_rest(self) -> None:
        """Kill a JVM that has outlived its driver."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


class Stage:
    """All of it; to be closed."""

    def __init__(self) -> None:
        self.directory = scratch()
        self.disk = self.directory / "disk"
        self.disk.mkdir()
        (self.directory / "incoming").mkdir()
        self.has_disk = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(self.disk)], check=False, capture_output=True).returncode == 0
        self.postgres = Postgres(self.directory / "pg")
        self.servers = [
            SoakServer(name, self.directory, self.postgres.url, settings={**SETTINGS, "hive.compactor.worker.threads": "0"}) for name in "ab"]
        self.uris = ",".join(server.uri for server in self.servers)
        self.workers: list[Process] = []
        self.drivers: list[Driver] = []

    def start(self, seed: int) -> None:
        """Everything, until drivers have their sessions."""
        wait_for(lambda: all(server.has_started() for server in self.servers), "the servers to start")
        self.workers += [SoakWorker(f"worker-{name}", self.directory, self.postgres.url, self.uris, SETTINGS) for name in "abc"]
        self.prepare(seed)
        self.drivers += [Driver(role, self.uris, seed, self.directory) for role in ROLES]
        wait_for(lambda: all((self.directory / f"{role}.begun").exists() for role in ROLES), "the drivers to begin")

    def accepted(self) -> set[int]:
        """Return the numbers of accepted compactions, of tables that are never dropped."""
        file = self.directory / "accepted"
        return {int(line) for line in file.read_text().splitlines()} if file.exists() else set()

    def prepare(self, seed: int) -> None:
        with (self.directory / "prepare.log").open("ab") as log:
            subprocess.run([sys.executable, "-m", "tests.robustness.soak.roles", "prepare", self.uris, str(seed), str(self.directory)],
                           stdout=log, stderr=log, check=True, env={**os.environ, "HADOOP_USER_NAME": "soak-prepare"})

    def close(self, *, keep: bool) -> None:
        for part in (*self.drivers, *self.workers, *self.servers):
            part.stop()
        self.postgres.embedded.stop()
        if self.has_disk:
            subprocess.run(["umount", "-l", str(self.disk)], check=False)
        if not keep:
            remove(self.directory)


