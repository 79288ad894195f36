"""Tables that keep their past: the Cleaner waits, and readers of every point that is kept read it, beside a model."""

from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest

from metastore.acid.names import BaseName
from metastore.acid.retention import HISTORY_RETENTION
from metastore.acid.snapshots import ValidTxnList
from metastore.acid.state import NotEnoughHistoryError, acid_state
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.sources import Sources
from metastore.acid_tables.time_travel import as_of_write_id, require_kept
from metastore.client.compactions import cleaned_write_ids, untouched_compactions
from metastore.compaction.explaining.service import ExplainingService
from metastore.compaction.measuring.service import MeasuringService
from metastore.locks.rules import LockType
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.txns.core.rules import Operation, reader_snapshot
from tests.support.answers import shown_compactions
from tests.support.lake import FakeRunner
from tests.support.transactions import named

DAY = timedelta(days=1)
KEPT = 3


def test_the_cleaner_waits_and_says_why(lake, test_clock):
    lake.table(**{HISTORY_RETENTION: "7"})
    lake.insert(times=3)
    request = lake.compact()
    [one] = ExplainingService(lake.db, lake.settings, lake.files).examine(named("d.t"), "", 1).entities
    assert "acid.history.retention.days keeps replaced files until " in one.cleanings[0].text
    assert lake.outcomes() == ["waiting"]
    assert len(lake.directories()) == 4
    assert lake.one(request).error_message.startswith("acid.history.retention.days keeps replaced files until ")
    test_clock.advance(timedelta(minutes=4))
    assert lake.outcomes() == [], "the table is not asked in each round"

    test_clock.advance(2 * DAY)
    assert age(lake) == 0, "nobody is to be woken for it"
    reader = lake.t.open()
    lake.db.once("UPDATE compaction_queue SET next_txn_id = %s", [reader])
    test_clock.advance(5 * DAY)
    assert lake.outcomes() == ["waiting"]
    assert f"transaction {reader} of " in lake.one(request).error_message
    assert age(lake) > 7 * DAY.total_seconds() - 60
    lake.t.commit(reader)
    assert lake.outcomes() == ["cleaned"]
    assert len(lake.directories()) == 1


def test_the_property_counts_as_it_is_when_the_cleaner_looks(lake, test_clock):
    lake.table(**{HISTORY_RETENTION: "for ever"})
    lake.insert(times=2)
    request = lake.compact()
    assert lake.outcomes() == ["waiting"]
    assert "nothing is removed: 'acid.history.retention.days' must be a whole number" in lake.one(request).error_message
    lake.parameters(**{HISTORY_RETENTION: "0"})
    test_clock.advance(timedelta(minutes=5))
    assert lake.outcomes() == ["cleaned"]


def test_what_was_dropped_is_not_kept(lake):
    lake.table(keys=("p",), **{HISTORY_RETENTION: "7"})
    lake.partition("p=1")
    lake.insert("d.t/p=1", times=2)
    lake.compact(what="d.t/p=1")
    lake.db.once("DELETE FROM partitions")
    assert lake.outcomes() == ["nothing to clean any more"]


def test_every_point_that_is_kept_can_be_read(lake, test_clock):
    """A write each day, and compactions and overwrites between them. An older point is read right, or refused."""
    lake.table(**{HISTORY_RETENTION: str(KEPT)})
    expected: list[set[int]] = [set()]
    refused = False
    for day in range(1, 15):
        if day % 5 == 0:
            overwrite(lake)
            expected.append({day})
        else:
            lake.insert()
            expected.append(expected[-1] | {day})
        if day % 5 in (3, 4):
            lake.compact("minor" if day % 5 == 3 else "major")
        lake.cleaner().tick()
        for write_id in range(1, day + 1):
            try:
                assert rows_at(lake, write_id, expected) == expected[write_id]
            except NotEnoughHistoryError:
                assert write_id < day - KEPT
                refused = True
        test_clock.advance(DAY)
    assert refused


def test_a_compaction_that_failed_takes_nothing_of_the_past(lake):
    """It has a mark above the base before it, and the Cleaner has never seen it."""
    lake.table(**{HISTORY_RETENTION: "7"})
    lake.insert(times=3)
    lake.compact()
    lake.insert()
    report, _ = lake.work(runner=FakeRunner(lake.files, fails="no memory"))
    assert report.outcome == "failed"
    assert lake.outcomes() == ["waiting"]

    expected = [set(range(1, write_id + 1)) for write_id in range(5)]
    assert [rows_at(lake, write_id, expected) for write_id in range(5)] == expected


def test_what_a_cleaning_removed_before_it_failed_is_known_for_good(new_lake, broken):
    """Whatever the history forgets: nobody reads an older point without what is gone."""
    lake = new_lake(cleaner_retry_maxattempts=0)
    lake.table()
    lake.insert(times=3)
    overwrite(lake)
    assert lake.work()[0].outcome == "nothing to compact"
    assert [one.outcome.value for one in lake.cleaner(broken("delta_0000002")).tick()] == ["failed"]
    for _ in range(6):
        lake.insert()
        lake.work(runner=FakeRunner(lake.files, fails="no memory"))
    assert lake.initiator().compactions.purge_history() == 3

    expected = [*(set(range(1, write_id + 1)) for write_id in range(4)), *(set(range(4, last)) for last in range(5, 12))]
    with pytest.raises(NotEnoughHistoryError):
        rows_at(lake, 3, expected)
    assert rows_at(lake, 9, expected) == expected[9]


def test_a_cleaning_that_stopped_in_the_middle_counts_as_begun(lake, test_clock, monkeypatch):
    lake.table()
    lake.insert(times=3)
    lake.compact()
    expected = [set(range(1, write_id + 1)) for write_id in range(4)]
    assert rows_at(lake, 2, expected) == {1, 2}

    class Disk(type(lake.files)):
        def delete(self, uri, **how):
            if "delta_0000002" in uri:
                raise OSError("the disk is away")
            super().delete(uri, **how)

    assert [one.outcome.value for one in lake.cleaner(Disk()).tick()] == ["failed"]
    with pytest.raises(NotEnoughHistoryError):
        rows_at(lake, 2, expected)
    assert rows_at(lake, 3, expected) == {1, 2, 3}


def age(lake):
    """Of the oldest cleaning that waits, for operators."""
    measured = MeasuringService(lake.db, lake.settings).measure()
    return next(value for what, of, value in measured if (what, of) == ("oldest", "ready_for_cleaning"))


def overwrite(lake):
    txn_id = lake.t.open()
    lake.t.lock(txn_id, "d.t", Operation.UPDATE, LockType.EXCL_WRITE)
    lake.put("d.t", str(BaseName(lake.t.allocate("d.t", txn_id)[txn_id])))
    lake.t.commit(txn_id)


def rows_at(lake, write_id, expected):
    """Return the write ids of the rows that are read as of a write id; a base has all that was expected at its own."""
    client = SimpleNamespace(types=ttypes, show_compact=partial(shown_compactions, lake.service))
    location, name = f"file://{lake.path('d.t')}", named("d.t")
    past = as_of_write_id(lake.t.reads("d.t", ValidTxnList.everything().format()), write_id)
    txns = reader_snapshot(lake.t.txns.get_open_txns()).without(untouched_compactions(client, name))
    state = acid_state(lake.files.listing(location), past, txns, lambda path: lake.files.read(f"{location}/{path}"))
    require_kept(lake.files, TableKind.FULL_ACID, [Directory("", (), location, state, Sources(), "orc")], past,
                 cleaned_write_ids(client, name))
    base = set() if state.base is None else expected[state.base.name.write_id]
    deltas = (range(delta.name.min_write_id, delta.name.max_write_id + 1) for delta in state.deltas)
    return base | {one for ids in deltas for one in ids if one <= write_id}
