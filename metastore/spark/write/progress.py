"""Shows the progress of long work: Spark's stages while they run, rows and files at the end. Silent without a terminal.

Rule: it only reads, from a thread of its own, and begins after a moment. The work never waits for it, and no failure of
it reaches the work. Where Spark draws bars itself (``spark.ui.showConsoleProgress``, in a terminal), only the last line
is ours.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import perf_counter
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from metastore.spark.write.acid_writer import WrittenDirectory

LONG_S = 2.0
"""Shorter work is not worth a line."""
_LOOK_S = 0.5


@contextmanager
def shown(
    spark: SparkSession,
    what: str,
    published: Sequence[WrittenDirectory],
    console: Console | None = None,
    *,
    long_s: float = LONG_S,
) -> Iterator[None]:
    """Show the Spark jobs of the work inside the block; ``published``: the list to which it adds its directories."""
    console = console or Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield
        return
    began, before, done = perf_counter(), len(published), Event()
    watcher = None
    if console.is_jupyter or spark.conf.get("spark.ui.showConsoleProgress", "false") != "true":
        tracker = spark.sparkContext.statusTracker()
        watcher = Thread(target=_draw, args=(tracker, what, console, done, long_s), daemon=True)
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if watcher is not None:
            watcher.join()
    seconds = perf_counter() - began
    if seconds >= long_s:
        written = published[before:]
        rows, files = sum(directory.rows for directory in written), sum(len(directory.files) for directory in written)
        console.print(f"{what}: {rows:,} rows in {files:,} files, {seconds:.0f} s", highlight=False, markup=False)


def stages(tracker: Any) -> tuple[str, int, int]:
    """The running stages by name, and the numbers of their finished tasks and of all their tasks."""
    running = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None]
    named = ", ".join(f"stage {info.stageId}" for info in running)
    return named, sum(info.numCompletedTasks for info in running), sum(info.numTasks for info in running)


def _draw(tracker: Any, what: str, console: Console, done: Event, long_s: float) -> None:
    if done.wait(long_s):
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} tasks"),
        TimeElapsedColumn(),
    )
    with suppress(Py4JError, OSError), Progress(*columns, console=console, transient=True) as bar:
        line: TaskID = bar.add_task(what, total=None)
        while True:
            named, completed, total = stages(tracker)
            if total:
                bar.update(line, description=f"{what}, {named}", completed=completed, total=total)
            if done.wait(_LOOK_S):
                return
