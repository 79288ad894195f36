"""The processes of a run: PostgreSQL, servers and workers that come back when they die, client processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from tempfile import mkdtemp
from time import monotonic
from types import MappingProxyType

from metastore.db.embedded import EmbeddedPostgres, _is_free
from metastore.db.failpoints import VARIABLE

PATIENCE_S = 120.0
TXN_TIMEOUT_S = 2.0
# Everything that takes minutes takes seconds, so that expiry and purges happen in the middle of the work.
SETTINGS = {
    "hive.txn.timeout": "2s", "hive.timedout.txn.reaper.start": "1s", "hive.timedout.txn.reaper.interval": "1s",
    "hive.metastore.acid.housekeeper.interval": "1s", "hive.metastore.acid.txn.cleaner.interval": "1s",
    "hive.compactor.check.interval": "1s", "hive.compactor.worker.sleep.time": "1s", "hive.compactor.cleaner.run.interval": "1s",
    "hive.compactor.cleaner.retention.time.seconds": "0s",
    "hive.compactor.aborted.txn.time.threshold": "1s", "hive.compactor.abortedtxn.threshold": "2",
    "metastore.compactor.worker.lease": "2s", "hive.compactor.cleaner.retry.retentionTime": "1s",
    "metastore.database.pool.timeout": "2000ms", "metastore.lock.check.wait": "300ms", "metastore.server.drain.timeout": "1s"}
# Held rows end a statement of the one server by lock_timeout, and one of the other by statement_timeout.
TIMEOUTS = {"a": {"metastore.database.lock.timeout": "1s", "metastore.database.statement.timeout": "3s"},
            "b": {"metastore.database.lock.timeout": "3s", "metastore.database.statement.timeout": "1s"}}
# What commits without waiting for the disk stays in PostgreSQL's memory for long, so that a kill loses much of it.
FORGETFUL = {"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB", "fsync": "off"}


class RunFailedError(Exception):
    """The run itself could not go on; it says nothing about the product."""


def wait_for(condition, what: str) -> None:
    ends_at = monotonic() + PATIENCE_S
    pause = threading.Event()
    while not condition():
        if monotonic() > ends_at:
            raise RunFailedError(f"waited {PATIENCE_S:.0f} s for {what}")
        pause.wait(0.02)


def port_of_our_own() -> int:
    """Return a port that no outgoing connection gets, so that it is still free after its listener was killed."""
    return next(port for port in iter(lambda: SystemRandom().randrange(20_000, 32_000), 0) if _is_free(port))


def state_of(pid: int) -> str:
    """Return the process state's letter of /proc: R, S, T, Z ...; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


class Postgres:
    """A PostgreSQL with its own directory; its watcher starts it again when it is killed."""

    def __init__(self, directory: Path) -> None:
        self.port = port_of_our_own()
        directory.mkdir(mode=0o711)
        (directory / "postgres-port").write_text(f"{self.port}\n")
        self.embedded = EmbeddedPostgres(directory, settings=FORGETFUL, max_connections=80, ends_with_us=True)
        self.embedded.start()
        self.url = self.embedded.tcp_url   # while it starts again, the file that says so is written anew
        self.killed_at: list[float] = []

    def children(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except OSError:
                    continue
                if parent == self.embedded.pid:
                    found.append(int(entry.name))
        return found

    def signal(self, number: int) -> None:
        """To every process."""
        postmaster = self.embedded.pid
        for pid in [] if postmaster is None else [postmaster, *self.children()]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """SIGKILL to every process at once, so that none can write anything down."""
        postmaster = self.embedded.pid
        if postmaster is None:
            return
        os.kill(postmaster, signal.SIGSTOP)
        doomed = [*self.children(), postmaster]
        for pid in doomed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._note_the_end_of(doomed)

    def kill_backend(self, pid: int) -> None:
        """SIGKILL to one session: the postmaster throws all memory away and recovers."""
        doomed = self.children()
        os.kill(pid, signal.SIGKILL)
        self._note_the_end_of(doomed)

    def _note_the_end_of(self, doomed: list[int]) -> None:
        """Until the last of them is dead, sessions answer from the memory that is then lost."""
        wait_for(lambda: all(state_of(pid) in {"", "Z"} for pid in doomed), "the processes of PostgreSQL to end")
        self.killed_at.append(monotonic())


class Process:
    """A ``metastore`` that is started again whenever it ends; ``planted``: a bug to start it with."""

    module: tuple[str, ...] = ("tests.robustness.harness.server", "-")
    """What Python runs, with its first arguments."""

    def __init__(self, name: str, directory: Path, database_url: str, planted: str = "", settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start the thread that keeps the process running. ``settings``: more than those of all histories."""
        self.name, self.directory, self.url, self.planted = name, directory, database_url, planted
        self.settings = {**SETTINGS, **settings}
        self.starts = 0
        self.next_failpoints = ""
        self.failpoints = ""
        self.paused = False
        self._ready = directory / f"{name}.json"
        self._stopping = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_up, name=f"supervisor of {name}", daemon=True)
        self._thread.start()

    def arguments(self) -> list[str]:
        """Return the subcommand of ``metastore`` and its options."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether the present process serves."""
        try:
            return json.loads(self._ready.read_text())["pid"] == self.process.pid and self.process.poll() is None
        except (OSError, AttributeError, ValueError):
            return False

    def has_started(self) -> bool:
        """Whether it is up for the first time. Raises: RunFailedError when it only ends again and again."""
        if self.starts > 3:
            raise RunFailedError(f"{self.name} does not start: {(self.directory / f'{self.name}.log').read_text()[-2000:]}")
        return self.ready

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def _keep_up(self) -> None:
        """Start it when it is not there; let it go on when a failpoint has stopped it for a while."""
        stopped = 0
        while not self._stopping.is_set():
            if self.process is None or self.process.poll() is not None:
                self._start()
            stopped = stopped + 1 if state_of(self.process.pid) == "T" and not self.paused else 0
            if stopped > 25:
                self.signal(signal.SIGCONT)
            self._stopping.wait(0.1)

    def _start(self) -> None:
        self._ready.unlink(missing_ok=True)
        self.failpoints, self.next_failpoints = self.next_failpoints, ""
        module = (self.module[0], self.planted) if self.planted else self.module
        command = [sys.executable, "-m", *module, *self.arguments(), "--http-port", "0",
                   "--ready-file", str(self._ready), "--database-url", self.url,
                   "--set", f"metastore.warehouse.roots={self.directory.as_uri()}"]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        with (self.directory / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, VARIABLE: self.failpoints})
        self.starts += 1


class Server(Process):
    """``metastore serve`` on a fixed port."""

    def __init__(self, name: str, directory: Path, database_url: str, planted: str = "", settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self.port = port_of_our_own()
        super().__init__(name, directory, database_url, planted, {**TIMEOUTS[name], **settings})

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def arguments(self) -> list[str]:
        return ["serve", "--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self.directory)]


class Compactor(Process):
    """``metastore worker``; ``uri``: the servers."""

    def __init__(self, name: str, directory: Path, database_url: str, uri: str, settings: Mapping[str, str]) -> None:
        self.uri = uri
        super().__init__(name, directory, database_url, settings=settings)

    def arguments(self) -> list[str]:
        return ["worker", "--uri", self.uri, "--warehouse", (self.directory / "warehouse").as_uri()]


class ClientProcess:
    """A process of client threads; a killed one is replaced when it is needed again."""

    def __init__(self, number: int, directory: Path, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        """``environment``: more of it."""
        self.number, self._directory, self._environment = number, directory, {**os.environ, **environment}
        self.process: subprocess.Popen[str] | None = None

    def begin(self, job: dict) -> None:
        if self.process is None or self.process.poll() is not None:
            self.stop()
            with (self._directory / f"client{self.number}.log").open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tests.robustness.harness.client"], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment)
            self._expect("ready")
        self.process.stdin.write(json.dumps({**job, "process": self.number}) + "\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def finish(self) -> None:
        """Wait until its job is done, unless it was killed."""
        if self.process.poll() is None:
            self._expect("done")

    def stop(self) -> None:
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                with suppress(OSError):  # what was still to be written has no reader any more
                    pipe.close()

    def _expect(self, word: str) -> None:
        answer = self.process.stdout.readline().strip()
        if answer != word and self.process.wait(10) != -signal.SIGKILL:
            raise RunFailedError(f"client {self.number} said {answer!r} instead of {word!r}; see {self._directory}")


def scratch() -> Path:
    directory = Path(mkdtemp(prefix="metastore-robustness-"))
    directory.chmod(0o711)   # PostgreSQL may run as somebody else
    return directory


def remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
