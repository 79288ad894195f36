"""What the Initiator sees beside bases: gauges of the tables with most deltas, and what reads cost."""

from datetime import timedelta

import pytest

from metastore.catalog.store import acid_history
from metastore.compaction.measuring.rules import HALF_LIFE_OF_SCORES, Counted, Deltas, DeltasOf
from metastore.compaction.measuring.service import MeasuringService
from metastore.compaction.measuring.store import upsert_deltas
from metastore.compaction.queue.rules.requests import Entity
from metastore.ids import DatabaseName
from tests.support.transactions import named

ROW = 100


def costs(lake):
    return {str(each.entity): each.deltas for each in MeasuringService(lake.db, lake.settings).costliest(100)}


def usual(lake, what="d.t"):
    return {str(each.entity): round(each.usual, 2) for each in MeasuringService(lake.db, lake.settings).costliest(100)}[what]


def held(lake):
    return {what: value for what, _, value in MeasuringService(lake.db, lake.settings).measure()}["obsolete_bytes"]


def gauges(lake):
    names = {each.value for each in Counted}
    return {(what, which): value for what, which, value in MeasuringService(lake.db, lake.settings).measure() if what in names}


def test_they_follow_writes_compactions_and_cleanings(new_lake, test_clock):
    lake = new_lake(metrics_deltas=1, metrics_obsolete_deltas=1)
    lake.table()
    lake.insert(times=3)
    initiator = lake.initiator()
    initiator.tick()
    assert costs(lake) == {"d.t": Deltas(3, 0, 0, 3, 6 * ROW)}
    assert gauges(lake) == {("deltas", "d.t"): 3}

    test_clock.advance(timedelta(minutes=5))
    lake.compact()
    initiator.tick()
    assert (costs(lake), gauges(lake), held(lake)) == ({}, {("obsolete_deltas", "d.t"): 3}, 6 * ROW)
    test_clock.advance(timedelta(minutes=5))
    lake.cleaner().tick()
    initiator.tick()
    assert (costs(lake), gauges(lake), held(lake)) == ({}, {}, 0)
    assert lake.db.once("SELECT count(*) FROM delta_measures") == [(1,)]
    test_clock.advance(timedelta(hours=25))  # what was usual is forgotten
    initiator.tick()
    assert lake.db.once("SELECT count(*) FROM delta_measures") == [(0,)]


def test_what_is_usual_follows_the_score_and_a_compaction_does_not_end_it(lake, test_clock):
    lake.table()
    lake.insert(times=4)
    initiator = lake.initiator()
    initiator.tick()
    assert usual(lake) == pytest.approx(4, abs=0.01)  # nothing was usual before: it is no change

    test_clock.advance(HALF_LIFE_OF_SCORES)
    assert usual(lake) == pytest.approx(4, abs=0.01)
    lake.insert(times=4)
    initiator.tick()
    assert costs(lake)["d.t"].score - usual(lake) == pytest.approx(4, abs=0.01)  # it grows
    test_clock.advance(HALF_LIFE_OF_SCORES)
    assert usual(lake) == pytest.approx(6, abs=0.01)

    lake.compact()
    initiator.tick()
    test_clock.advance(HALF_LIFE_OF_SCORES)
    lake.insert()
    initiator.tick()
    assert usual(lake) == pytest.approx(3, abs=0.01)  # half of 6, and half of nothing


def test_nothing_is_written_for_what_has_nothing_beside_its_base(lake):
    inserted = "SELECT pg_stat_get_xact_tuples_inserted('delta_measures'::regclass)"
    with lake.db.begin() as pg:
        upsert_deltas(pg, [DeltasOf(Entity(named("d.t"), ""), Deltas())])
        assert pg.sql(inserted) == [(0,)]
        upsert_deltas(pg, [DeltasOf(Entity(named("d.t"), ""), Deltas(obsolete_size=1)), DeltasOf(Entity(named("d.u"), ""), Deltas())])
        assert pg.sql(inserted) == [(1,)]
        assert pg.sql('SELECT "table", obsolete_bytes FROM delta_measures') == [("t", 1)]
        upsert_deltas(pg, [DeltasOf(Entity(named("d.t"), ""), Deltas())])
        assert pg.sql("SELECT FROM delta_measures") == []


def test_only_so_many_tables_have_a_gauge(new_lake):
    lake = new_lake(metrics_deltas=2, metrics_tables=2)
    for name, number in (("a", 1), ("b", 2), ("c", 4), ("e", 3)):
        lake.table(name)
        lake.insert(f"d.{name}", times=number)
    lake.initiator().tick()

    assert gauges(lake) == {("deltas", "d.c"): 4, ("deltas", "d.e"): 3}
    assert list(costs(lake)) == ["d.c", "d.e", "d.b", "d.a"]


def test_what_is_gone_without_a_word_is_forgotten_after_a_day(lake, test_clock):
    """The release before does not know of the measures when it drops a table."""
    lake.table()
    lake.insert(times=3)
    initiator = lake.initiator()
    initiator.tick()
    lake.drop()
    initiator.tick()
    assert list(costs(lake)) == ["d.t"]
    test_clock.advance(timedelta(hours=25))
    initiator.tick()

    assert costs(lake) == {}


def test_a_table_that_cannot_be_listed_keeps_its_measures(lake, test_clock, monkeypatch):
    for name in ("a", "b"):
        lake.table(name)
        lake.insert(f"d.{name}", times=3)
    initiator, listing = lake.initiator(), lake.files.listing
    initiator.tick()
    test_clock.advance(timedelta(hours=25))
    lake.put("d.b", "delta_0000009_0000009_0000")

    def denied(_self, uri):
        if uri.endswith("/a"):
            raise PermissionError("a: permission denied")
        return listing(uri)

    with monkeypatch.context() as refused:
        refused.setattr(type(lake.files), "listing", denied)
        initiator.tick()

    assert {name: each.deltas for name, each in costs(lake).items()} == {"d.a": 3, "d.b": 3}


def test_where_nobody_looks_at_metrics_nothing_is_kept(new_lake):
    lake = new_lake(metrics_on=False)
    lake.table()
    lake.insert(times=3)
    lake.initiator().tick()

    assert costs(lake) == {}


@pytest.mark.parametrize("ends", ["table", "database", "partition"])
def test_they_go_and_move_with_their_table(lake, ends):
    lake.table(keys=["x"])
    lake.partition("x=1")
    lake.insert("d.t/x=1", times=3)
    lake.initiator().tick()
    MeasuringService(lake.db, lake.settings).update(Entity(named("d.u"), "x=2"), Counted.DELTAS, 7, 0)  # of no table
    with lake.db.begin() as pg:
        acid_history.rename_table_history(pg, named("d.t"), named("d.u"))
        acid_history.rename_partition_history(pg, named("d.u"), "x=1", "x=2")
    assert list(costs(lake)) == ["d.u/x=2"]

    with lake.db.begin() as pg:
        {"table": lambda: acid_history.delete_table_history(pg, named("d.u")),
         "database": lambda: acid_history.delete_database_history(pg, DatabaseName("hive", "d")),
         "partition": lambda: acid_history.delete_partition_history(pg, named("d.u"), ["x=2"])}[ends]()
    assert costs(lake) == {}
