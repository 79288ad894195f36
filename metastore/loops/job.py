"""How a Worker gets a compaction job done: a child process with Spark in it, local or through spark-submit.

Rule: nothing that handles rows runs in the server's process. A job that has lost its claim is killed at once; a
job whose server is gone ends by itself (``job_guard``). The driver runs beside us, never in a cluster, so that killing
it ends all renames. The child's exit status and what it says of its error are all that is believed; what it wrote is
checked on disk. The log of a job that failed is kept.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import NamedTuple, Protocol

from metastore.compaction.queue.rules.properties import SPARK_QUEUE, spark_settings
from metastore.compaction.working.job import CompactionJobResult, CompactionJobSpec, telling_line
from metastore.config import CompactionSettings

JOB_MODULE = "metastore.spark.compaction.job"
GUARD_MODULE = "metastore.loops.job_guard"
KEPT_LOGS = 20
_POLL_S = 1.0
_KILL_AFTER_S = 10.0
_GONE_AFTER_S = 60.0
_LOG_TAIL = 100_000
_DEPLOY_MODE = "spark.submit.deployMode"


class JobLivesError(RuntimeError):
    """The job was killed and is still there: it may write yet."""


class JobOutcome(NamedTuple):
    """Whether the job succeeded; ``message`` says why not, and ``result`` what the job said of it, if anything."""

    succeeded: bool
    message: str = ""
    result: CompactionJobResult | None = None


class JobRunner(Protocol):
    """Runs a compaction job to its end."""

    def unavailable(self) -> str | None:
        """Why no job can be run here, or None."""

    def run(self, spec: CompactionJobSpec, pulse: Callable[[], None]) -> JobOutcome:
        """Run the job. ``pulse`` is called every second or so; when it raises, the job is killed.

        However this ends, the job is dead and can write nothing any more. Raises: JobLivesError if not; what ``pulse``
        raises.
        """


@dataclass(frozen=True)
class SubprocessRunner:
    """A job in a process group of its own. ``command`` gets the specification as its last argument."""

    settings: CompactionSettings
    metastore_uri: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables by which the job's client reaches the metastore: passwords belong on no command line."""
    _kept: deque[Path] = field(default_factory=deque)
    """Directories of the logs of failed jobs, oldest first."""

    def unavailable(self) -> str | None:
        """No PySpark, no Java, no spark-submit; or a driver that we could not end."""
        if self._own_conf().get(_DEPLOY_MODE, "client") != "client":
            return (
                f"metastore.compactor.spark.conf asks for another {_DEPLOY_MODE} than client: a driver in the "
                "cluster would outlive its Worker"
            )
        if self.settings.submit == "spark-submit":
            return None if _spark_submit() else "spark-submit is not on the PATH and PySpark is not installed"
        if find_spec("pyspark") is None:
            return "PySpark is not installed: pip install 'transaction-metastore[spark]'"
        if not _java():
            return "there is no Java: install Java 17 or set JAVA_HOME"
        return None

    def run(self, spec: CompactionJobSpec, pulse: Callable[[], None]) -> JobOutcome:
        """Run the job in a child process; its output goes to a file, which is kept if it fails."""
        with tempfile.TemporaryDirectory(prefix=f"compaction-{spec.compaction_id}-") as directory:
            work = Path(directory)
            complete = replace(
                spec,
                metastore_uri=spec.metastore_uri or self.metastore_uri,
                spark_conf=self._spark_conf(spec),
                result_path=str(work / "result.json"),
            )
            with (work / "job.log").open("wb") as log:
                child = subprocess.Popen(  # noqa: S603 - our own command, no shell
                    [sys.executable, "-m", GUARD_MODULE, *self._command(complete, work)],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, **self.environment},
                )
                try:
                    code = _watched(child, pulse)
                finally:
                    _kill(child)
            result = _result(Path(complete.result_path))
            if code != 0:
                said = (result.error if result else "") or _last_words(work / "job.log")
                log_place = self._kept_log(work / "job.log", spec)
                message = f"The compaction job ended with status {code}: {said} ({log_place})"
                return JobOutcome(succeeded=False, message=message, result=result)
            return JobOutcome(succeeded=True, result=result)

    def _kept_log(self, log: Path, spec: CompactionJobSpec) -> str:
        """Where the log of a failed job is from now on; the oldest of too many goes."""
        try:
            directory = Path(
                tempfile.mkdtemp(prefix=f"failed-compaction-{spec.compaction_id}-", dir=self.settings.log_dir or None)
            )
            shutil.copyfile(log, directory / log.name)
        except OSError as error:
            return f"its log could not be kept: {error}"
        self._kept.append(directory)
        while len(self._kept) > KEPT_LOGS:
            shutil.rmtree(self._kept.popleft(), ignore_errors=True)
        return f"its log: {directory / log.name}"

    def _command(self, spec: CompactionJobSpec, work: Path) -> Sequence[str]:
        if self.settings.submit == "spark-submit":
            conf = [
                part
                for name, value in spec.spark_conf.items()
                if name not in ("spark.master", _DEPLOY_MODE)
                for part in ("--conf", f"{name}={value}")
            ]
            job = find_spec(JOB_MODULE)
            return [
                _spark_submit() or "spark-submit",
                "--master",
                self.settings.spark_master,
                "--deploy-mode",
                "client",
                *conf,
                (job.origin if job else None) or JOB_MODULE,
                spec.to_json(),
            ]
        path = work / "job.json"
        path.write_text(spec.to_json(), encoding="utf-8")
        return [sys.executable, "-m", JOB_MODULE, str(path)]

    def _spark_conf(self, spec: CompactionJobSpec) -> dict[str, str]:
        """Ours, then the global settings, then what the table or the request may ask for, which wins."""
        queue = {SPARK_QUEUE: self.settings.job_queue} if self.settings.job_queue else {}
        wanted = spark_settings(spec.properties)
        return {"spark.master": self.settings.spark_master, **queue, **self._own_conf(), **wanted}

    def _own_conf(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.settings.spark_conf if "=" in pair)


def _watched(child: subprocess.Popen[bytes], pulse: Callable[[], None]) -> int:
    while True:
        try:
            return child.wait(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            pulse()


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child with everything that it started (the JVM is a grandchild). Raises: JobLivesError."""
    for number, patience in ((signal.SIGTERM, _KILL_AFTER_S), (signal.SIGKILL, None)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        if number == signal.SIGTERM and _group_lives(child.pid, 1.0):
            continue
        break
    child.wait()
    if child.stdin is not None:
        child.stdin.close()
    if _group_lives(child.pid, _GONE_AFTER_S):
        raise JobLivesError(f"The compaction job (process group {child.pid}) was killed and is still there")


def _group_lives(group: int, seconds: float) -> bool:
    """Whether a grandchild is still there after its grace: exits take a moment, longer while a disk is waited for."""
    ends_at, pause = perf_counter() + seconds, Event()
    while perf_counter() < ends_at:
        _bury(group)
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        pause.wait(0.01)
    return True


def _bury(group: int) -> None:
    """A container's first process inherits what its children leave, and whom nobody waits for counts as there."""
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def _last_words(log: Path) -> str:
    """What a job that left no word of its error has said: the cause in its last stack trace, or its last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:].splitlines()]
    return telling_line(lines) or "it said nothing"


def _result(path: Path) -> CompactionJobResult | None:
    return CompactionJobResult.from_json(path.read_text(encoding="utf-8")) if path.exists() else None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _spark_submit() -> str | None:
    """That on the PATH, else that beside this Python (PySpark brings it)."""
    return shutil.which("spark-submit") or shutil.which("spark-submit", path=str(Path(sys.executable).parent))
