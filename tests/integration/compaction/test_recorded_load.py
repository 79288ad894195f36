"""What the simulator of compactions reads from a database."""

from datetime import timedelta

from benchmarks.recorded_load import BASE, DELTA, record
from metastore.compaction.queue.store import opens
from tests.support.transactions import named


def test_what_was_written_and_when(lake, test_clock):
    lake.table(totalSize="5000")
    lake.table("p", keys=["x"])
    lake.partition("x=1", "p")
    lake.insert()
    test_clock.advance(timedelta(hours=12))
    for _ in range(2):
        lake.insert("d.p/x=1")
    lake.abort()
    lake.initiator().tick()
    opens.upsert_opens(lake.db, {named("d.t"): 60})
    test_clock.advance(timedelta(hours=12))
    lake.insert()
    lake.compact()

    found = record(lake.db.url)

    assert (round(found.days, 2), found.workers) == (1, 1)
    part, whole = found.written
    assert [round(moment / 3600) for moment in part.moments + whole.moments] == [12, 12, 0, 24]
    assert (part.name, part.delta, part.base, part.reads, part.deletes) == ("d.p/x=1", 200, BASE, 1, False)
    assert (whole.name, whole.base) == ("d.t", 5000)
    assert 1 < whole.reads < 10


def test_nothing_is_on_record(lake):
    assert record(lake.db.url) == ((), 1)
    assert DELTA < BASE
