"""What aborted transactions wrote goes without a compaction (COMP-23)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from metastore.acid.names import DeltaName
from metastore.db.engine import PgTx
from metastore.files import Files
from metastore.locks.rules import LockType
from metastore.txns.core.rules import Operation
from tests.support.lake import FakeRunner
from tests.support.transactions import named

HOUR = timedelta(hours=1)


@pytest.fixture
def eager(new_lake):
    return new_lake(aborted_txn_threshold=0)


@pytest.mark.parametrize("compacts", [False, True])
def test_a_transaction_that_is_aborted_at_any_moment_of_a_cleaning(eager, monkeypatch, compacts):
    """Who aborts when the write ids have been read is not forgotten for the files that nobody removed: they would be read."""
    lake, run = eager, PgTx.sql
    lake.table()
    statements = left = 0
    with ThreadPoolExecutor(1) as other:
        while statements >= left:  # the moments, one after the other
            left += 1
            if compacts:
                lake.insert(times=2)
                lake.compact()
            lake.abort()
            txn_id, write_id = lake.begin()
            statements = 0

            def counted(pg, query, parameters=None, *, txn_id=txn_id, moment=left):
                nonlocal statements
                rows = run(pg, query, parameters)
                statements += 1
                if statements == moment:
                    with monkeypatch.context() as undone:
                        undone.setattr(PgTx, "sql", run)
                        other.submit(lake.t.abort, txn_id).result()
                return rows

            with monkeypatch.context() as patched:
                patched.setattr(PgTx, "sql", counted)
                lake.cleaner().tick()
            delta = str(DeltaName(write_id, write_id, 0))
            assert delta not in lake.directories() or ("t", write_id) in lake.remembered(), f"moment {left} of {statements}"
            if statements < left:
                lake.t.abort(txn_id)
            lake.cleaner().tick()
            assert delta not in lake.directories()


def test_aborted_writes_go_by_themselves(eager):
    """COMP-C28."""
    lake = eager
    lake.table()
    lake.abort(times=2)
    lake.insert()
    lake.abort()

    assert lake.outcomes() == ["cleaned"]
    assert lake.directories() == ["delta_0000003_0000003_0000"]
    assert lake.shown() == []
    assert lake.t.count("txn_components") == 0
    assert lake.t.count("completed_txn_components") == 1


@pytest.mark.parametrize("what", ["d.t", "d.p/x=1"])
def test_what_a_failed_compaction_could_not_remove_goes_as_soon_as_it_can(lake, broken, test_clock, what):
    """No threshold, and no next compaction: it may never come. What fails is tried again, and looked at no more after that."""
    def killed(spec, _):
        (lake.path(what) / f".compaction_{spec.txn_id}_0" / "tasks").mkdir(parents=True)
        raise RuntimeError("no space left on device")

    lake.table()
    lake.table("p", keys=["x"])
    lake.partition("x=1", "p")
    lake.insert(what, times=2)
    asked = lake.request("major", what)
    with_broken = lake.worker(FakeRunner(lake.files, during=killed))
    replace(with_broken, files=broken(".compaction_")).tick()
    staging = f".compaction_{lake.one(asked.id).txn_id}_0"
    assert (lake.state(asked.id), staging in lake.directories(what)) == ("failed", True)

    [failed] = lake.cleaner(broken(".compaction_")).tick()
    assert (failed.outcome, staging in failed.reason, "permission denied" in failed.reason) == ("failed", True, True)
    assert lake.outcomes() == []  # its pause
    test_clock.advance(HOUR)
    assert lake.outcomes() == ["cleaned"]
    assert lake.directories(what) == ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert lake.t.rows("SELECT operation, cleaned FROM txn_components") == [("c", True)]
    assert (lake.outcomes(), lake.initiator().tick().queued) == ([], [])


def test_below_the_thresholds_aborts_stay(new_lake, test_clock):
    lake = new_lake(aborted_txn_threshold=2)
    lake.table()
    lake.abort(times=2)

    assert lake.outcomes() == []
    test_clock.advance(HOUR * 13)
    assert lake.outcomes() == ["cleaned"]


@pytest.mark.parametrize("kept", ["below the threshold", "NO_CLEANUP"])
def test_whatever_stays_hides_nothing_behind_it(new_lake, kept):
    """A thousand tables, a page of them, come before the one whose turn it is."""
    below = kept == "below the threshold"
    lake = new_lake(aborted_txn_threshold=1 if below else 0)
    txn_id = lake.t.open()
    lake.db.once("""INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
        SELECT %s, 'hive', 'd', 'a' || number, '', 'i', 1 FROM generate_series(1, 1000) AS number""", [txn_id])
    lake.db.once("""INSERT INTO tables (catalog, db, name, type, location, sd, partition_keys, parameters)
        SELECT 'hive', 'd', 'a' || number, 'MANAGED_TABLE', 'file:///nowhere', '{}', '[]',
               '{"transactional": "true", "no_cleanup": "true"}' FROM generate_series(1, 1000) AS number""")
    lake.t.abort(txn_id)
    lake.table("z")
    lake.abort("d.z", times=2)

    cleaned = lake.cleaner().tick()
    assert [str(each.entity) for each in cleaned if each.outcome == "cleaned"] == ["d.z"]
    assert len(cleaned) == (1 if below else 1001)


def test_open_writers_keep_their_files(eager):
    """COMP-C29, COMP-C31: and readers are in nobody's way."""
    lake = eager
    lake.table()
    lake.t.open()
    lake.abort()
    lake.begin()
    lake.insert()
    lake.abort()

    assert lake.outcomes() == ["cleaned"]
    assert lake.directories() == ["delta_0000002_0000002_0000", "delta_0000003_0000003_0000"]


def test_obsolete_directories_are_none_of_its_business(eager):
    lake = eager
    lake.table()
    lake.put("d.t", "base_0000020", "delta_0000019_0000019_0000")
    lake.seed(20)
    lake.abort()

    lake.outcomes()
    assert lake.directories() == ["base_0000020", "delta_0000019_0000019_0000"]


def test_a_failed_abort_cleanup_is_marked_and_tried_again(eager, test_clock, broken):
    """COMP-C32, COMP-C33."""
    lake = eager
    lake.table()
    lake.abort()
    cleaner = lake.cleaner(broken("delta"))
    assert [one.outcome.value for one in cleaner.tick()] == ["failed"]
    [marker] = lake.shown()
    assert (marker.type.value, marker.state.value) == ("abort_txn_cleanup", "ready_for_cleaning")
    assert "permission denied" in marker.error_message

    assert lake.outcomes() == []
    test_clock.advance(timedelta(seconds=301))
    cleaner.tick()
    test_clock.advance(timedelta(seconds=301))
    assert lake.outcomes() == []
    test_clock.advance(timedelta(seconds=300))
    assert lake.outcomes() == ["cleaned"]
    assert lake.shown() == []
    assert lake.directories() == []


def test_an_ordinary_cleaning_removes_the_marker(eager, broken):
    """COMP-C34."""
    lake = eager
    lake.table()
    lake.insert(times=2)
    lake.abort()
    lake.cleaner(broken("delta_0000003")).tick()
    assert len(lake.shown()) == 1
    lake.compact()

    assert lake.outcomes() == ["cleaned"]
    assert [one.state.value for one in lake.shown()] == ["succeeded"]


def test_an_aborted_dynamic_insert(eager):
    """COMP-C35, HIVE-25502: everywhere below the table, also in partitions that were never added; nothing obsolete."""
    lake = eager
    lake.table("p", keys=["x"])
    lake.partition("x=1", "p")
    lake.insert("d.p/x=1", times=2)
    lake.put("d.p/x=1", "base_0000002")
    txn_id, write_id = lake.begin("d.p")
    lake.path("p/delta_0000003_0000003_0000").rename(lake.path("p/x=1/delta_0000003_0000003_0000"))
    lake.put("d.p/x=9", "delta_0000003_0000003_0000")
    assert write_id == 3
    lake.t.abort(txn_id)

    assert lake.outcomes() == ["cleaned"]
    assert lake.directories("d.p/x=1") == ["base_0000002", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert lake.directories("d.p/x=9") == []
    assert lake.t.count("txn_components") == 0
    assert lake.t.count("completed_txn_components") == 2


@pytest.mark.parametrize(("keys", "place"), [([], "d.t"), (["x"], "d.t/x=9")])
def test_an_aborted_writer_that_never_said_what_it_writes(eager, keys, place):
    """It had a write id and no lock; its files are void until they are gone, and readers never saw them."""
    lake = eager
    lake.table(keys=keys)
    txn_id = lake.t.open()
    write_id = lake.t.allocate("d.t", txn_id)[txn_id]
    lake.put(place, str(DeltaName(write_id, write_id, 0)))
    lake.t.abort(txn_id)
    lake.t.reaper.tick()

    assert lake.t.reads("d.t").aborted == {write_id}
    assert lake.outcomes() == ["cleaned"]
    assert lake.directories(place) == []
    lake.t.reaper.tick()
    assert lake.t.reads("d.t").aborted == set()


def test_rows_of_aborted_writes_among_others_keep_their_history(eager):
    """COMP-C36."""
    lake = eager
    lake.table()
    lake.insert()
    lake.abort()
    lake.insert()
    for number in (1, 2, 3):
        (lake.path("t") / f"delta_000000{number}_000000{number}_0000" / "bucket_00000").unlink()
        (lake.path("t") / f"delta_000000{number}_000000{number}_0000").rmdir()
    lake.put("d.t", "delta_0000001_0000003")

    lake.outcomes()
    assert lake.directories() == ["delta_0000001_0000003"]
    assert lake.remembered() == [("t", 2)]

    lake.insert()
    lake.compact()
    assert "cleaned" in lake.outcomes()
    assert lake.remembered() == []


def test_a_transaction_that_aborts_after_the_listing_is_not_forgotten(eager, monkeypatch):
    lake = eager
    lake.table()
    lake.abort()
    late, _ = lake.begin()
    cleaner = lake.cleaner()
    listing = Files.listing

    def abort_meanwhile(self, uri):
        found = listing(self, uri)
        if lake.t.state(late) == "open":
            lake.t.abort(late)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Files, "listing", abort_meanwhile)
        cleaner.tick()

    assert lake.remembered() == [("t", 2)]
    assert lake.directories() == ["delta_0000002_0000002_0000"]
    assert lake.outcomes() == ["cleaned"]
    assert lake.directories() == []


def test_a_dropped_tables_aborts_are_forgotten(eager):
    lake = eager
    lake.table()
    lake.abort()
    lake.drop()

    assert lake.outcomes() == ["nothing to clean any more"]
    assert lake.t.count("txn_components") == 0
    assert named("d.t").table == "t"


def first_deletion(monkeypatch, what, event):
    """Something happens while the Cleaner removes the first directory whose path has ``what`` in it."""
    delete, happened = Files.delete, []

    def deleting(self, uri, *, recursive=True):
        delete(self, uri, recursive=recursive)
        if what in uri and not happened:
            happened.append(uri)
            event()

    monkeypatch.setattr(Files, "delete", deleting)
    return happened


def test_a_table_that_comes_again_loses_nothing_to_a_list_of_its_predecessor(eager, monkeypatch):
    """The list of aborted entities is read at once and worked off one by one."""
    lake = eager
    for name in ("a", "t"):
        lake.table(name)
        lake.abort(f"d.{name}", times=2)

    def drop_and_create():
        lake.drop_for_good()
        lake.table()
        lake.insert(times=2)

    happened = first_deletion(monkeypatch, "/a/", drop_and_create)
    lake.cleaner().tick()

    assert happened
    assert lake.directories() == ["delta_0000003_0000003_0000", "delta_0000004_0000004_0000"]


def test_a_table_that_comes_again_loses_nothing_to_the_cleaner_of_its_predecessor(lake, monkeypatch):
    """In the middle of one table's obsolete directories: the new ones get other names than those of the list."""
    lake.table()
    lake.insert(times=3)
    lake.compact()

    def drop_and_create():
        lake.drop_for_good()
        lake.table()
        lake.insert(times=3)

    happened = first_deletion(monkeypatch, "/t/", drop_and_create)
    lake.cleaner().tick()

    assert happened
    assert lake.directories() == [f"delta_{one:07d}_{one:07d}_0000" for one in (4, 5, 6)]
    assert lake.t.count("completed_txn_components") == 3


def test_another_table_in_the_same_place_loses_nothing(eager, monkeypatch):
    """Ids go on by name, and the name is another one: before each deletion the table is asked for by its identity."""
    lake = eager
    lake.table()
    lake.abort(times=2)

    def drop_and_create():
        lake.drop_for_good()
        lake.table("u", location=f"file://{lake.path('t')}")
        lake.put("d.t", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000")

    happened = first_deletion(monkeypatch, "/t/", drop_and_create)
    [report] = lake.cleaner().tick()

    assert happened
    assert report.outcome == "nothing to clean any more"
    assert lake.directories() == ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]


def test_a_table_in_another_tables_directory_keeps_what_the_others_aborted_writes_are_called(eager):
    """An aborted insert without partitions is looked for in the whole tree, where its write ids may be committed ones."""
    lake = eager
    lake.table("p", keys=["x"])
    lake.partition("x=1", "p")
    lake.table("p/inner")
    lake.put("d.p/inner", "delta_0000001_0000001_0000")
    lake.abort("d.p/x=1")
    txn_id = lake.t.open()
    lake.t.lock(txn_id, "d.p", Operation.INSERT, LockType.SHARED_WRITE)
    lake.t.abort(txn_id)

    lake.cleaner().tick()
    assert lake.directories("d.p/inner") == ["delta_0000001_0000001_0000"]
    assert lake.directories("d.p/x=1") == []


def test_aborted_writes_stay_where_two_tables_have_a_directory(eager):
    lake = eager
    lake.table()
    lake.table("u", location=f"file://{lake.path('t')}")
    lake.abort()

    [failed] = lake.cleaner().tick()
    assert (failed.outcome.value, "is also the directory of table d.u" in failed.reason) == ("failed", True)
    assert lake.directories() == ["delta_0000001_0000001_0000"]
    assert lake.remembered() == [("t", 1)]
