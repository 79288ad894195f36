"""Runners of compaction jobs: a child process with Spark in it, local or through spark-submit.

Rule: nothing that handles rows runs in the server's process. A job that has lost its claim is killed at once; a job
whose server is gone ends by itself (``job_guard``). The driver runs beside us, never in a cluster, so that killing it
ends all renames. Only the child's exit status and its error message are believed; its files are checked on disk. The
log of a failed job is kept. A local Spark is kept for later jobs (``warm_sparks``).
"""

import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

from metastore.catalog.rules.storage_classes import Classes
from metastore.compaction.queue.rules.properties import SPARK_QUEUE, spark_settings
from metastore.compaction.working.job_specification import (
    IN_UTC,
    CompactionJobResult,
    CompactionJobSpec,
    JobProgress,
    telling_line,
)
from metastore.config import CompactionSettings
from metastore.loops.job_process import JobProcess
from metastore.loops.warm_sparks import IdleReport, WarmSparks
from metastore.object_stores import ObjectStores

JOB_MODULE = "metastore.spark.compaction.process"
KEPT_LOGS = 20
_LOG_TAIL = 100_000
_NO_STORES = ObjectStores()
_DEPLOY_MODE = "spark.submit.deployMode"
_STORAGE_CLASSES = "spark.metastore.storage.classes"
"""The property that ``SerdeTable.java`` reads: classes that may store insert-only tables."""
_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options for the JVM of spark-submit, beside those of its settings."""


class JobOutcome(NamedTuple):
    """The outcome of a job; ``message``: the reason of a failure, ``result``: the job's own report, if any."""

    succeeded: bool
    message: str = ""
    result: CompactionJobResult | None = None


class Pulse(Protocol):
    """A callback of a Worker while its job runs."""

    def __call__(self, progress: JobProgress | None = None) -> None:
        """Continue, or raise an error that ends the job; ``progress``: the job's last report."""


class JobRunner(Protocol):
    """A runner of one compaction job."""

    def unavailable(self) -> str | None:
        """Return why no job can run here, or None."""

    def run(self, spec: CompactionJobSpec, pulse: Pulse) -> JobOutcome:
        """Run the job. ``pulse`` is called every second or so; when it raises, the job is killed.

        After any end the job is dead and can write nothing any more. Raises: JobLivesError if not; any error of
        ``pulse``.
        """


class SubprocessRunner:
    """A runner that gives each job a process group of its own."""

    def __init__(
        self,
        settings: CompactionSettings,
        metastore_uri: str = "",
        environment: Mapping[str, str] | None = None,
        storage_classes: Sequence[Classes] = (),
        stores: ObjectStores = _NO_STORES,
    ) -> None:
        """Prepare a runner.

        ``environment``: variables by which the job reaches the metastore: passwords belong on no command line.
        ``storage_classes``: classes that the job may load besides the known ones. ``stores``: the object stores of its
        files, which the job is told in its specification, a file that only this user reads.
        """
        self.settings = settings
        self.metastore_uri = metastore_uri
        self.environment = {"PYSPARK_DRIVER_PYTHON": sys.executable, **(environment or {})}
        self.sparks = WarmSparks(
            [sys.executable, "-m", JOB_MODULE], self.environment, settings.spark_idle, settings.spark_jobs
        )
        self.stores = stores
        self._storage_classes = ",".join(map(":".join, storage_classes))
        self._kept: deque[Path] = deque()
        """Directories of the logs of failed jobs, oldest first."""

    def unavailable(self) -> str | None:
        """Return the obstacle: no PySpark, no Java, no spark-submit; or a driver that could not be ended."""
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

    def run(self, spec: CompactionJobSpec, pulse: Pulse) -> JobOutcome:
        """Run the job in a child process; its output goes to a file, which is kept if it fails."""
        with tempfile.TemporaryDirectory(prefix=f"compaction-{spec.compaction_id}-") as directory:
            work = Path(directory)
            log, result_path = work / "job.log", work / "result.json"
            complete = replace(
                spec,
                metastore_uri=spec.metastore_uri or self.metastore_uri,
                spark_conf=self._spark_conf(spec),
                hadoop_conf=self.stores.of_jobs(),
                result_path=str(result_path),
            )
            path = _job_file(complete)
            path.write_text(complete.to_json(), encoding="utf-8")

            def beat() -> None:
                pulse(_progress(Path(complete.progress_path)))

            if self.settings.submit == "spark-submit":
                code = self._submitted(complete, log, beat)
            else:
                code = self.sparks.run(complete.spark_conf, path, log, beat)
            result = _result(result_path)
            if code != 0:
                said = (result.error if result else "") or _last_words(log)
                message = f"The compaction job ended with status {code}: {said} ({self._kept_log(log, spec)})"
                return JobOutcome(succeeded=False, message=message, result=result)
            return JobOutcome(succeeded=True, result=result)

    def end_idle(self) -> IdleReport:
        """End Sparks that have waited too long for a job, as a round of a loop."""
        return self.sparks.end_idle()

    def close(self) -> None:
        """End every Spark that waits for a job."""
        self.sparks.close()

    def _submitted(self, spec: CompactionJobSpec, log: Path, beat: Callable[[], None]) -> int:
        options = f"{os.environ.get(_SUBMIT_OPTIONS, '')} {IN_UTC}".strip()  # The JVM starts before the job.
        process = JobProcess(self._command(spec), log, {**self.environment, _SUBMIT_OPTIONS: options})
        try:
            return process.wait(beat)
        finally:
            process.end()

    def _kept_log(self, log: Path, spec: CompactionJobSpec) -> str:
        """Keep the log of a failed job and return its path; delete the oldest if there are too many."""
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

    def _command(self, spec: CompactionJobSpec) -> Sequence[str]:
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
            str(_job_file(spec)),
        ]

    def _spark_conf(self, spec: CompactionJobSpec) -> dict[str, str]:
        """Return our settings, then the global ones, then those of the table or the request, which win."""
        queue = {SPARK_QUEUE: self.settings.job_queue} if self.settings.job_queue else {}
        classes = {_STORAGE_CLASSES: self._storage_classes} if self._storage_classes else {}
        wanted = spark_settings(spec.properties)
        return {"spark.master": self.settings.spark_master, **queue, **classes, **self._own_conf(), **wanted}

    def _own_conf(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.settings.spark_conf if "=" in pair)


def _job_file(spec: CompactionJobSpec) -> Path:
    """Return the file of a specification: its secrets belong on no command line, which everybody can see."""
    return Path(spec.result_path).with_name("job.json")


def _last_words(log: Path) -> str:
    """Return the last words of a job without an error message: the cause in its last stack trace, or its last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:].splitlines()]
    return telling_line(lines) or "it said nothing"


def _result(path: Path) -> CompactionJobResult | None:
    return CompactionJobResult.from_json(path.read_text(encoding="utf-8")) if path.exists() else None


def _progress(path: Path) -> JobProgress | None:
    """Return the job's last progress report; None if there is none."""
    with suppress(FileNotFoundError):
        return JobProgress.from_json(path.read_text(encoding="utf-8"))
    return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _spark_submit() -> str | None:
    """Return spark-submit on the PATH, else the one beside this Python (PySpark brings it)."""
    return shutil.which("spark-submit") or shutil.which("spark-submit", path=str(Path(sys.executable).parent))
