"""Processes with Spark in them that do one compaction job after another: a start takes longer than a small job.

Rule: a Spark does a job at a time, and only jobs with the settings that it was started with. On this machine it is kept
after a successful job; after any other it is ended at once, and also after too many jobs or too long a pause. So the
rules for a job with a process of its own hold here too: a job that was given up is dead, and the death of a Spark is
the failure of its job.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import NamedTuple

from metastore.loops.job_process import JobLivesError, JobProcess
from metastore.telemetry.logs import get_logger

IDLE_LOOK = timedelta(seconds=10)
_DIED = -1
_log = get_logger(__name__)


class IdleReport(NamedTuple):
    """The number of Sparks that wait for a job, and of those ended because they waited too long, or were gone."""

    kept: int
    ended: int


@dataclass
class _Spark:
    """A process that reads names of files with specifications, and answers each with an exit status."""

    conf: Mapping[str, str]
    process: JobProcess
    log: Path
    jobs: int = 0
    idle_since: float = 0.0

    def do(self, spec: Path, log: Path, pulse: Callable[[], None]) -> int:
        """Do a job; return its exit status, or ``_DIED`` if no answer comes any more."""
        begins_at = self.log.stat().st_size
        self.jobs += 1
        self.process.ask(str(spec))
        answer = self.process.answer(pulse)
        code = int(answer) if answer else _DIED
        if code != 0:
            with self.log.open("rb") as said, log.open("wb") as kept:
                said.seek(begins_at)
                shutil.copyfileobj(said, kept)
        return code

    def end(self) -> int:
        """End the process and forget its log; return its exit status. Raises: JobLivesError."""
        try:
            return self.process.end()
        finally:
            shutil.rmtree(self.log.parent, ignore_errors=True)


@dataclass
class WarmSparks:
    """The Sparks of a process. ``command`` starts one; as many are kept as jobs were done at a time."""

    command: Sequence[str]
    environment: Mapping[str, str]
    idle: timedelta
    """How long a Spark without a job is kept; 0: no longer than its job."""
    most_jobs: int
    _waiting: list[_Spark] = field(default_factory=list)
    """Those without a job, that which has waited longest first."""
    _lock: Lock = field(default_factory=Lock)
    _closed: bool = False

    def run(self, conf: Mapping[str, str], spec: Path, log: Path, pulse: Callable[[], None]) -> int:
        """Do a job in a Spark with these settings; return its exit status. ``log``: gets the output of a failed job.

        ``pulse``: as for ``JobRunner.run``. Raises: as there.
        """
        spark, kept, code = self._taken(conf), False, _DIED
        try:
            code = spark.do(spec, log, pulse)
            kept = code == 0 and _is_on_this_machine(conf) and self._kept(spark)
        finally:
            status = 0 if kept else spark.end()
        return (status or _DIED) if code == _DIED else code

    def end_idle(self) -> IdleReport:
        """End Sparks that have waited for too long."""
        with self._lock:
            oldest = perf_counter() - self.idle.total_seconds()
            late = [spark for spark in self._waiting if spark.idle_since <= oldest or not spark.process.lives]
            self._waiting = [spark for spark in self._waiting if spark not in late]
            kept = len(self._waiting)
        for spark in late:
            _end(spark)
        return IdleReport(kept, len(late))

    def close(self) -> None:
        """End waiting Sparks, and keep none from now on."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, []
        for spark in waiting:
            _end(spark)

    def _taken(self, conf: Mapping[str, str]) -> _Spark:
        """Return a waiting Spark, or a new one, for which a Spark with other settings makes room."""
        with self._lock:
            gone = [spark for spark in self._waiting if not spark.process.lives]
            alive = [spark for spark in self._waiting if spark.process.lives]
            fit = next((spark for spark in reversed(alive) if spark.conf == conf), None)
            gone += alive[:1] if fit is None else []
            self._waiting = [spark for spark in alive if spark is not fit and spark not in gone]
        for spark in gone:
            _end(spark)
        return fit or self._started(conf)

    def _started(self, conf: Mapping[str, str]) -> _Spark:
        log = Path(tempfile.mkdtemp(prefix="compaction-spark-")) / "spark.log"
        return _Spark(conf, JobProcess(self.command, log, self.environment, answers=True), log)

    def _kept(self, spark: _Spark) -> bool:
        """Keep the Spark for its next job; return whether it is kept."""
        with self._lock:
            if self._closed or not self.idle or spark.jobs >= self.most_jobs:
                return False
            spark.idle_since = perf_counter()
            self._waiting.append(spark)
            return True


def _is_on_this_machine(conf: Mapping[str, str]) -> bool:
    """Return True if Spark runs on this machine; on a cluster, an idle Spark would keep its executors from others."""
    master = conf.get("spark.master", "")
    return master.startswith("local") and not master.startswith("local-cluster")


def _end(spark: _Spark) -> None:
    try:
        spark.end()
    except JobLivesError as error:  # Its last job is done, and it has no other.
        _log.warning("compaction_spark_not_ended", reason=str(error))
