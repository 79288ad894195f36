"""Progress of a compaction: its Spark application and its rows, written to a file while it works.

Rule: it reads the state that Spark keeps for its status pages, with or without pages. Nothing waits for it, and values
that cannot be read at the moment are left out.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from metastore.compaction.working.job_specification import JobProgress

_LOOK_S = 1.0
_ENDED = frozenset({"COMPLETE", "FAILED"})


@contextmanager
def reported(spark: SparkSession, path: str) -> Iterator[Callable[[int], None]]:
    """Write Spark's progress of the block to the path, every second; "": to no file.

    Yields a function that takes the number of rows that the stages will take in.
    """
    watch = _Watch(spark, Path(path))
    if not path:
        yield watch.expect
        return
    thread = Thread(target=watch.run, name="compaction-progress", daemon=True)
    thread.start()
    try:
        yield watch.expect
    finally:
        watch.is_over.set()
        thread.join()


class _Watch:
    """A watch of the Spark jobs that begin after it was made."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.is_over = Event()
        self._context, self._path = spark.sparkContext, path
        self._before = {*self._context.statusTracker().getJobIdsForGroup()}
        self._expected = 0
        self._ended: dict[int, int] = {}  # the rows of each stage that has ended

    def expect(self, rows: int) -> None:
        """Set the number of rows that all stages together will take in."""
        self._expected = rows

    def run(self) -> None:
        """Run the thread."""
        while True:
            with suppress(Py4JError, OSError):
                self._write(self._seen())
            if self.is_over.wait(_LOOK_S):
                return

    def _seen(self) -> JobProgress:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in sorted({*tracker.getJobIdsForGroup()} - self._before)]
        store = self._context._jsc.sc().statusStore()  # noqa: SLF001 - PySpark shows no rows of a stage
        stages = {
            stage: rows for job in jobs if job for stage in job.stageIds if (rows := self._rows(store, stage)) >= 0
        }
        return JobProgress(
            application_id=str(self._context.applicationId),
            tracking_url=self._context.uiWebUrl or "",
            stages_done=sum(1 for stage in stages if stage in self._ended),
            stages=len(stages),
            rows=sum(stages.values()),
            rows_expected=self._expected,
        )

    def _rows(self, store: Any, stage: int) -> int:
        """Return the number of rows that a stage has taken in; -1 for one that is skipped."""
        if stage in self._ended:
            return self._ended[stage]
        try:
            seen = store.lastStageAttempt(stage)
        except Py4JError:  # the stage has not begun
            return 0
        status, rows = seen.status().name(), int(seen.inputRecords()) + int(seen.shuffleReadRecords())
        if status == "SKIPPED":
            return -1
        if status in _ENDED:
            self._ended[stage] = rows
        return rows

    def _write(self, progress: JobProgress) -> None:
        part = self._path.with_suffix(".part")
        part.write_text(progress.to_json(), encoding="utf-8")
        part.replace(self._path)
