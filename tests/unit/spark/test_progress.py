"""Progress: shown where somebody looks, quiet elsewhere, and never in the way of the work."""

from io import StringIO
from threading import Event
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from rich.console import Console

from metastore.spark.write.acid_writer import WrittenDirectory, WrittenFile
from metastore.spark.write.progress import shown, stages


class Tracker:
    """Spark's, with stage 7 at 3 of 8 tasks; ``seen`` is set when somebody looked."""

    def __init__(self, error=None):
        self.seen, self.error = Event(), error

    def getActiveStageIds(self):
        self.seen.set()
        if self.error:
            raise self.error
        return [7, 8]

    def getStageInfo(self, number):
        return SimpleNamespace(stageId=7, numCompletedTasks=3, numTasks=8) if number == 7 else None


def spark(tracker, own_bars="false"):
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker),
                           conf=SimpleNamespace(get=lambda *_: own_bars))


def terminal():
    return Console(file=StringIO(), force_terminal=True, width=100, color_system=None)


def directory():
    return WrittenDirectory("l", "l/d", (WrittenFile("a", 1000, 1, 0), WrittenFile("b", 234, 1, 1)))


def test_stages_that_run_are_added_up():
    assert stages(Tracker()) == ("stage 7", 3, 8)


def test_a_terminal_shows_stages_and_then_rows_and_files():
    tracker, console, published = Tracker(), terminal(), [directory()]
    with shown(spark(tracker), "INSERT d.t", published, console, long_s=0.0):
        assert tracker.seen.wait(60)
        published.append(directory())
    text = console.file.getvalue()
    assert "INSERT d.t, stage 7" in text
    assert "3/8 tasks" in text
    assert "INSERT d.t: 1,234 rows in 2 files" in text


def test_where_spark_draws_bars_only_the_last_line_is_ours():
    tracker, console = Tracker(), terminal()
    with shown(spark(tracker, "true"), "INSERT d.t", [], console, long_s=0.0):
        pass
    assert not tracker.seen.is_set()
    assert console.file.getvalue() == "INSERT d.t: 0 rows in 0 files, 0 s\n"


@pytest.mark.parametrize("console", [Console(file=StringIO(), force_terminal=False), terminal()], ids=["a file", "short work"])
def test_quiet_where_nobody_looks_and_for_short_work(console):
    tracker = Tracker()
    with shown(spark(tracker), "INSERT d.t", [], console, long_s=3600):
        pass
    assert not tracker.seen.is_set()
    assert console.file.getvalue() == ""


def test_failures_pass_through_and_leave_no_thread():
    with pytest.raises(ZeroDivisionError), shown(spark(Tracker()), "INSERT d.t", [], terminal(), long_s=0.0):
        raise ZeroDivisionError


def test_a_tracker_that_fails_does_not_disturb_the_work():
    tracker, console = Tracker(Py4JError("gone")), terminal()
    with shown(spark(tracker), "INSERT d.t", [directory()], console, long_s=0.0):
        assert tracker.seen.wait(60)
    assert "0 rows" in console.file.getvalue()
