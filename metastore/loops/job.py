"""How a Worker gets a compaction job done: a child process with Spark in it, local or through spark-submit.

Rule: nothing that handles rows runs in the server's process, and a job that has lost its claim is killed at once. The
child's exit status and its last line of output are all that is believed; what it wrote is checked on disk.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, Protocol

from metastore.compaction.job import CompactionJobResult, CompactionJobSpec
from metastore.compaction.rules.requests import CompactionType
from metastore.config import CompactionSettings

JOB_MODULE = "metastore.spark.compact_job"
_POLL_S = 1.0
_KILL_AFTER_S = 10.0
_LOG_TAIL = 4000


class JobOutcome(NamedTuple):
    """Whether the job succeeded; ``message`` says why not."""

    succeeded: bool
    message: str = ""
    result: CompactionJobResult | None = None


class JobRunner(Protocol):
    """Runs a compaction job to its end."""

    @property
    def ends_with_us(self) -> bool:
        """Whether a job that we killed is dead for certain, so that it can write nothing any more."""

    def unavailable(self) -> str | None:
        """Why no job can be run here, or None."""

    def unsupported(self, kind: CompactionType) -> str | None:
        """Why such a job cannot be run anywhere, or None."""

    def run(self, spec: CompactionJobSpec, pulse: Callable[[], None]) -> JobOutcome:
        """Run the job. ``pulse`` is called every second or so; when it raises, the job is killed."""


@dataclass(frozen=True)
class SubprocessRunner:
    """A job in a process group of its own. ``command`` gets the specification as its last argument."""

    settings: CompactionSettings
    metastore_uri: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables by which the job's client reaches the metastore: passwords belong on no command line."""

    @property
    def ends_with_us(self) -> bool:
        """A local job is our child; on a cluster, executors may outlive spark-submit."""
        return self.settings.submit == "local"

    def unsupported(self, kind: CompactionType) -> str | None:
        """The job does minor and major compactions, of full-ACID and of insert-only tables alike."""
        if kind not in (CompactionType.MINOR, CompactionType.MAJOR):
            return f"This service does not do {kind.value} compactions; use a Worker of Hive"
        return None

    def unavailable(self) -> str | None:
        """No PySpark, no Java, no spark-submit."""
        if self.settings.submit == "spark-submit":
            return None if _spark_submit() else "spark-submit is not on the PATH and PySpark is not installed"
        if find_spec("pyspark") is None:
            return "PySpark is not installed: pip install 'transaction-metastore[spark]'"
        if not _java():
            return "there is no Java: install Java 17 or set JAVA_HOME"
        return None

    def run(self, spec: CompactionJobSpec, pulse: Callable[[], None]) -> JobOutcome:
        """Run the job in a child process; its output goes to a file, of which the end is kept for the message."""
        with tempfile.TemporaryDirectory(prefix=f"compaction-{spec.compaction_id}-") as directory:
            work = Path(directory)
            told = replace(spec, metastore_uri=spec.metastore_uri or self.metastore_uri,
                           spark_conf=self._spark_conf(spec), result_path=str(work / "result.json"))
            with (work / "job.log").open("wb") as log:
                child = subprocess.Popen(  # noqa: S603 - our own command, no shell
                    self._command(told, work), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    start_new_session=True, env={**os.environ, **self.environment})
                try:
                    code = _watched(child, pulse)
                finally:
                    _kill(child)
            if code != 0:
                return JobOutcome(succeeded=False, message=_last_words(work / "job.log", code))
            return JobOutcome(succeeded=True, result=_result(Path(told.result_path)))

    def _command(self, spec: CompactionJobSpec, work: Path) -> Sequence[str]:
        if self.settings.submit == "spark-submit":
            conf = [part for name, value in spec.spark_conf.items() if name != "spark.master"
                    for part in ("--conf", f"{name}={value}")]
            job = find_spec(JOB_MODULE)
            return [_spark_submit() or "spark-submit", "--master", self.settings.spark_master, *conf,
                    (job.origin if job else None) or JOB_MODULE, spec.to_json()]
        path = work / "job.json"
        path.write_text(spec.to_json(), encoding="utf-8")
        return [sys.executable, "-m", JOB_MODULE, str(path)]

    def _spark_conf(self, spec: CompactionJobSpec) -> dict[str, str]:
        """Ours, then the global settings, then ``compactor.spark.*`` of the table or the request, which win."""
        own = dict(pair.split("=", 1) for pair in self.settings.spark_conf if "=" in pair)
        asked = {key.removeprefix("compactor."): value for key, value in spec.properties.items()
                 if key.startswith("compactor.spark.")}
        queue = {"spark.yarn.queue": self.settings.job_queue} if self.settings.job_queue else {}
        return {"spark.master": self.settings.spark_master, **queue, **own, **asked}


def _watched(child: subprocess.Popen[bytes], pulse: Callable[[], None]) -> int:
    while True:
        try:
            return child.wait(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            pulse()


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child with everything that it started (the JVM is a grandchild)."""
    for number, patience in ((signal.SIGTERM, _KILL_AFTER_S), (signal.SIGKILL, None)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        if number == signal.SIGTERM and _group_lives(child.pid):
            continue
        break
    child.wait()


def _group_lives(group: int) -> bool:
    """Whether a grandchild is still there after its grace; checked for a moment, since exits take one."""
    ends_at = perf_counter() + 1.0
    while perf_counter() < ends_at:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
    return True


def _last_words(log: Path, code: int) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:].splitlines()]
    said = next((line for line in reversed(lines) if line), "it said nothing")
    return f"The compaction job ended with status {code}: {said}"


def _result(path: Path) -> CompactionJobResult | None:
    return CompactionJobResult.from_json(path.read_text(encoding="utf-8")) if path.exists() else None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _spark_submit() -> str | None:
    """The one on the PATH, else the one beside this Python (PySpark brings it)."""
    return shutil.which("spark-submit") or shutil.which("spark-submit", path=str(Path(sys.executable).parent))
