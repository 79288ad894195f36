"""Statistics of columns after a major compaction: what the job has seen replaces what is older (hive.compactor.gather.stats)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from metastore.acid.snapshots import ValidWriteIdList
from metastore.catalog.model import ColumnStatistics
from metastore.catalog.service.statistics import Seen, StatisticsService
from metastore.compaction.working.job_specification import CompactionJobResult
from metastore.errors import UnavailableError
from tests.support.lake import FakeRunner
from tests.support.transactions import named

HOUR = timedelta(hours=1)
OLD, NEW = ({"longStats": {"lowValue": 1, "highValue": high, "numNulls": 0, "numDVs": 1}} for high in (1, 9))


class Job(FakeRunner):
    """Says of every column that it is asked for the same."""

    def __init__(self, lake, during=None):
        super().__init__(lake.files, during=during)

    def run(self, spec, pulse):
        outcome = super().run(spec, pulse)
        return outcome._replace(result=CompactionJobResult(statistics=dict.fromkeys(spec.statistics, NEW)))


@pytest.fixture
def statistics(database):
    return StatisticsService(database)


def table(lake, **more):
    lake.table(sd={"cols": [{"name": name, "type": "int"} for name in "abc"]}, **more)


def known(statistics, partition="", engine="hive"):
    return {each.column: each.data for each in statistics.get(named("d.t"), [partition], "abc", engine)[0]}


def store(statistics, clock, *columns, partition="", engine="hive"):
    """Statistics of an hour ago."""
    statistics.update(named("d.t"), [ColumnStatistics(column, "int", OLD, partition, engine) for column in columns])
    clock.advance(HOUR)


def compacted(lake, statistics, kind="major", what="d.t", during=None):
    runner = Job(lake, during)
    lake.request(kind, what)
    report = replace(lake.worker(runner), statistics=statistics).tick()
    assert report.outcome == "compacted", report
    [spec] = runner.specs
    return spec.statistics


def test_those_that_there_are_become_new(lake, statistics, test_clock):
    """COMP-W24."""
    table(lake)
    lake.insert(times=3)
    store(statistics, test_clock, "a", "c")
    store(statistics, test_clock, "b", engine="spark")

    assert compacted(lake, statistics) == ("a", "c")
    assert known(statistics) == {"a": NEW, "c": NEW}
    assert statistics.get(named("d.t"), [""], "ac", "hive", Seen(ValidWriteIdList("d.t", 3)))[1]  # the write ids of the base
    assert not statistics.get(named("d.t"), [""], "ac", "hive", Seen(ValidWriteIdList("d.t", 4)))[1]
    assert known(statistics, engine="spark") == {"b": OLD}


def test_those_of_the_partition_that_was_compacted(lake, statistics, test_clock):
    table(lake, keys=["x"])
    for number in range(2):
        lake.partition(f"x={number}")
        store(statistics, test_clock, "a", partition=f"x={number}")
    lake.insert("d.t/x=1", times=3)

    assert compacted(lake, statistics, what="d.t/x=1") == ("a",)
    assert (known(statistics, "x=0"), known(statistics, "x=1")) == ({"a": OLD}, {"a": NEW})


def test_what_was_analyzed_or_removed_meanwhile_stays_so(lake, statistics, test_clock):
    table(lake)
    lake.insert(times=3)
    store(statistics, test_clock, "a", "b", "c")
    newer = {"longStats": {"lowValue": 5, "numNulls": 0, "numDVs": 1}}

    def meanwhile(_spec, _pulse):
        statistics.update(named("d.t"), [ColumnStatistics("a", "int", newer)])
        statistics.delete(named("d.t"), "", ["b"], None)

    compacted(lake, statistics, during=meanwhile)

    assert known(statistics) == {"a": newer, "c": NEW}


@pytest.mark.parametrize(("settings", "kind"), [({"gather_stats": False}, "major"), ({}, "minor")])
def test_where_they_are_left_alone(new_lake, statistics, test_clock, settings, kind):
    lake = new_lake(**settings)
    table(lake)
    lake.insert(times=3)
    store(statistics, test_clock, "a")

    assert compacted(lake, statistics, kind) == ()
    assert known(statistics) == {"a": OLD}


@pytest.mark.parametrize("method", ["columns", "renew"])
def test_no_compaction_fails_for_them(lake, statistics, test_clock, monkeypatch, method):
    table(lake)
    lake.insert(times=3)
    store(statistics, test_clock, "a")

    def gone(*_):
        raise UnavailableError("PostgreSQL is away")

    with monkeypatch.context() as away:
        away.setattr(StatisticsService, method, gone)
        compacted(lake, statistics)

    assert known(statistics) == {"a": OLD}
    assert [each.state.value for each in lake.shown()] == ["ready_for_cleaning"]


def test_a_table_that_was_dropped_meanwhile(lake, statistics, test_clock):
    table(lake)
    lake.insert(times=3)
    store(statistics, test_clock, "a")

    compacted(lake, statistics, during=lambda *_: lake.drop())
