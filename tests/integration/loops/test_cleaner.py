"""The Cleaner over real directories (COMP-17 to COMP-23)."""

import hashlib
import os
from dataclasses import replace
from datetime import timedelta

import pytest

from metastore.compaction.cleaning.rules import CleaningVerdict
from metastore.config import CompactionSettings
from metastore.db.engine import PgTx
from metastore.files import Files

HOUR = timedelta(hours=1)


def test_nothing_to_do(lake):
    """COMP-C01."""
    assert lake.cleaner().tick() == []


def test_major(lake):
    """COMP-C02."""
    lake.table()
    lake.put("d.t", "base_0000020")
    lake.seed(20)
    lake.insert(times=3)
    lake.compact()

    assert lake.outcomes() == ["cleaned"]
    [left] = lake.directories()
    assert left.startswith("base_0000023_v")


def test_minor(lake):
    """COMP-C04."""
    lake.table()
    lake.put("d.t", "base_0000020")
    lake.seed(20)
    lake.insert(times=3)
    lake.compact("minor")

    assert lake.outcomes() == ["cleaned"]
    base, delta = lake.directories()
    assert base == "base_0000020"
    assert delta.startswith("delta_0000021_0000023_v")


def test_ten_partitions(lake):
    """COMP-C13; COMP-C27: all in one look, whatever the page."""
    lake.settings = replace(lake.settings, fetch_size=1)
    lake.table("p", keys=["x"])
    for number in range(10):
        lake.partition(f"x={number}", "p")
        lake.insert(f"d.p/x={number}", times=2)
        lake.compact(what=f"d.p/x={number}")

    assert lake.outcomes() == ["cleaned"] * 10
    assert {request.state for request in lake.shown()} == {"succeeded"}


def test_aborts_above_and_below_a_compacted_base(lake):
    """COMP-C30: only the base is left."""
    lake.table()
    lake.insert(times=2)
    lake.abort(times=2)
    lake.insert()
    lake.compact()
    lake.abort(times=3)

    assert lake.outcomes() == ["cleaned"]
    [left] = lake.directories()
    assert left.startswith("base_0000005_v")


@pytest.mark.parametrize("kinds", [("delta",), ("delete_delta", "delta")], ids=["inserts", "both kinds"])
def test_of_two_results_of_one_range_one_is_read_and_the_other_goes(lake, kinds):
    """COMP-C38: reader, compaction and Cleaner choose the same."""
    lake.table()
    lake.insert(times=5)
    twins = [lake.t.open() for _ in range(2)]
    for txn_id in twins:
        lake.t.commit(txn_id)
        for kind in kinds:
            lake.put("d.t", f"{kind}_0000001_0000005_v{txn_id:07d}")
    lake.insert()
    asked = lake.request("minor")
    kept = [f"{kind}_0000001_0000005_v{twins[1]:07d}" for kind in kinds]
    gone = [f"{kind}_0000001_0000005_v{twins[0]:07d}" for kind in kinds]

    state = lake.state_of("d.t")
    assert [delta.path for delta in state.deltas][:-1] == kept
    assert set(gone) < set(state.obsolete)
    assert lake.worker().tick().outcome == "compacted"
    assert lake.outcomes() == ["cleaned"]
    assert [name.partition("_v")[0] for name in lake.directories()] == [
        name for name in ("delete_delta_0000001_0000006", "delta_0000001_0000006") if name.startswith(kinds)]
    assert lake.state(asked.id) == "succeeded"


def test_writes_since_the_compaction_are_untouched(lake):
    """COMP-C08, COMP-W29."""
    lake.table()
    lake.insert(times=2)
    lake.compact()
    lake.insert(times=2)

    assert lake.outcomes() == ["cleaned"]
    assert [name.split("_v")[0] for name in lake.directories()] == [
        "base_0000002", "delta_0000003_0000003_0000", "delta_0000004_0000004_0000"]
    assert lake.t.rows("SELECT write_id FROM completed_txn_components ORDER BY 1") == [(3,), (4,)]


def test_minor_then_major_behind_one_reader(lake):
    """COMP-C09."""
    lake.table()
    reader = lake.t.open()
    lake.insert(times=3)
    first = lake.compact("minor")
    lake.insert()
    second = lake.compact("major")
    assert lake.outcomes() == ["waiting"]
    assert len(lake.directories()) == 6

    lake.t.commit(reader)
    assert lake.outcomes() + lake.outcomes() == ["cleaned", "cleaned"]
    assert len(lake.directories()) == 1
    assert {lake.state(first), lake.state(second)} == {"succeeded"}


def test_delayed_cleanup(new_lake, test_clock):
    """COMP-C10. Without any setting: for an hour after the compaction, though nobody reads."""
    lake = new_lake(cleaner_retention=CompactionSettings().cleaner_retention)
    lake.table()
    lake.insert(times=2)
    lake.compact()

    for minutes, outcomes in ((0, []), (59, []), (2, ["cleaned"])):
        test_clock.advance(timedelta(minutes=minutes))
        assert lake.outcomes() == outcomes


def test_a_dropped_table(lake):
    """COMP-C14."""
    lake.table()
    lake.insert(times=2)
    request_id = lake.compact()
    lake.drop()

    assert lake.outcomes() == ["nothing to clean any more"]
    assert lake.state(request_id) == "succeeded"
    assert len(lake.directories()) == 3


@pytest.mark.parametrize("what", ["d.t", "d.p/x=1"])
def test_what_dead_writers_and_jobs_prepared_goes_when_their_transactions_have_ended(lake, what):
    """Never by age: what an open transaction prepares stays, however old it is."""
    lake.table()
    lake.table("p", keys=["x"])
    lake.partition("x=1", "p")
    root = lake.path(what.partition("/")[0])
    aborted, ended = (lake.t.open() for _ in range(2))
    lake.t.abort(aborted)
    lake.t.commit(ended)
    lake.insert(what, times=2)
    lake.compact("major", what)
    alive = lake.t.open()  # after the compaction: in nobody's way
    for txn_id in (aborted, ended, alive):
        for place in (root / f".acid_stage_{txn_id}_0_b", lake.path(what) / f".compaction_{txn_id}_1"):
            (place / "tasks").mkdir(parents=True)
            (place / "tasks" / "part-0").touch()
            os.utime(place, (0, 0))
    (lake.path(what) / f".unproven_{aborted:07d}").mkdir()
    (lake.path(what) / ".unproven_9999999").mkdir()

    assert lake.outcomes() == ["cleaned"]
    hidden = sorted(child.name for child in {*root.iterdir(), *lake.path(what).iterdir()} if child.name.startswith("."))
    assert hidden == [f".acid_stage_{alive}_0_b", f".compaction_{alive}_1", ".unproven_9999999"]


def test_aborted_writes_are_cleaned_with_what_was_prepared_for_them(new_lake):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    txn_id, _ = lake.begin()
    (lake.path("t") / f".acid_stage_{txn_id}_0").mkdir()
    lake.t.abort(txn_id)

    assert lake.outcomes() == ["cleaned"]
    assert lake.directories() == []


@pytest.mark.parametrize(("table", "partition"), [({"no_cleanup": "true"}, {}), ({}, {"NO_CLEANUP": "True"})])
def test_no_cleanup(lake, table, partition):
    """COMP-C15."""
    lake.table("p", keys=["x"], **table)
    lake.partition("x=1", "p", **partition)
    lake.insert("d.p/x=1", times=2)
    request_id = lake.compact("major", "d.p/x=1")

    assert lake.outcomes() == ["refused"]
    assert lake.state(request_id) == "refused"
    assert "NO_CLEANUP" in lake.one(request_id).error_message
    assert len(lake.directories("d.p/x=1")) == 3


def test_a_failed_transaction_fails_the_request(lake):
    """HIVE-29572: ready for cleaning, but its transaction never committed."""
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    claimed = lake.service.find_next_compact2("w-1", "v", None)
    from metastore.compaction.queue.rules.requests import Claim

    txn_id = lake.t.open()
    lake.service.update_compactor_state(Claim(claimed.id, "w-1"), 2, None, txn_id)
    lake.put("d.t", f"base_0000002_v{txn_id:07d}")
    lake.service.mark_compacted(Claim(claimed.id, "w-1"))
    assert lake.outcomes() == ["waiting"]
    lake.t.abort(txn_id)

    assert lake.outcomes() == ["failed"]
    assert lake.state(asked.id) == "failed"
    assert "delta_0000001_0000001_0000" in lake.directories()


def test_failures_double_the_pause_and_end(new_lake, test_clock, broken):
    """COMP-C19, COMP-C20."""
    lake = new_lake(cleaner_retry_maxattempts=3, cleaner_retry_retention=timedelta(seconds=100))
    lake.table()
    lake.insert(times=2)
    request_id = lake.compact()
    cleaner = lake.cleaner(broken("delta_0000001"))
    for pause in (100, 200, 400):
        assert [one.outcome.value for one in cleaner.tick()] == ["failed"]
        shown = lake.one(request_id)
        assert shown.state == "ready_for_cleaning"
        assert "permission denied" in shown.error_message
        test_clock.advance(timedelta(seconds=pause - 50))
        assert cleaner.tick() == []
        test_clock.advance(timedelta(seconds=50))

    cleaner.tick()
    assert lake.state(request_id) == "failed"
    assert "delta_0000002_0000002_0000" not in lake.directories()  # what could go is gone


def test_what_a_dead_writer_prepared_and_cannot_be_removed_holds_nothing_up(lake, broken):
    """It is another user's, say."""
    lake.table()
    dead = lake.t.open()
    lake.t.abort(dead)
    (lake.path("t") / f".acid_stage_{dead}_0").mkdir()
    lake.insert(times=2)
    request_id = lake.compact()

    assert [one.outcome.value for one in lake.cleaner(broken(".acid_stage")).tick()] == ["cleaned"]
    assert lake.directories() == [f".acid_stage_{dead}_0", f"base_0000002_v{lake.one(request_id).txn_id:07d}"]


def test_what_could_not_be_removed_is_not_a_success(lake, broken):
    """COMP-C22, HIVE-24444."""
    lake.table()
    lake.insert(times=3)
    request_id = lake.compact()

    [left] = lake.cleaner(broken("delta_0000002", silent=True)).tick()
    assert left.outcome.value == "waiting"
    assert "delta_0000002_0000002_0000" in left.reason
    assert lake.state(request_id) == "ready_for_cleaning"
    assert len(lake.directories()) == 2

    assert lake.outcomes() == ["cleaned"]
    assert len(lake.directories()) == 1


def test_a_file_system_that_is_not_there_is_not_an_empty_table(lake):
    lake.table()
    lake.insert(times=2)
    request_id = lake.compact()
    lake.path("t").rename(lake.path("hidden"))

    assert lake.outcomes() == ["failed"]
    assert lake.state(request_id) == "ready_for_cleaning"
    lake.path("hidden").rename(lake.path("t"))


def test_cleaning_forgets_aborted_writes_up_to_its_mark_only(lake):
    """COMP-Q28."""
    lake.table()
    lake.table("u")
    lake.insert(times=2)
    lake.abort()
    lake.abort("d.u")
    lake.compact()
    lake.abort()

    assert lake.outcomes() == ["cleaned"]
    assert [name.split("_v")[0] for name in lake.directories()] == ["base_0000003"]
    assert lake.remembered() == [("t", 4), ("u", 1)]


def replicated(lake):
    """Make the database a source of replication, and return (the Cleaner's files, cmroot)."""
    lake.db.once("UPDATE databases SET parameters = '{\"repl.source.for\": \"policy\"}' WHERE name = 'd'")
    root = lake.folder / ".cmroot"
    return Files(cmroot=f"file://{root}"), root


def test_what_a_replica_may_need_is_moved(lake):
    """COMP-C25: also of aborted transactions, as Hive does it; not what dead writers had only prepared."""
    files, root = replicated(lake)
    lake.table()
    lake.insert(times=2)
    lake.abort()
    prepared = lake.path("d.t") / f".acid_stage_{lake.begin()[0]}"
    lake.t.abort(int(prepared.name.rsplit("_", 1)[1]))
    prepared.mkdir()
    (prepared / "bucket_00000").write_bytes(b"half")
    contents = {}
    for place in lake.path("d.t").glob("delta_*"):
        contents[place.name] = place.name.encode()
        (place / "bucket_00000").write_bytes(contents[place.name])
    lake.compact()

    assert [each.outcome.value for each in lake.cleaner(files).tick()] == ["cleaned"]
    [left] = lake.directories()
    assert left.startswith("base_")
    assert {f"bucket_00000_{hashlib.md5(text).hexdigest()}": text for text in contents.values()} == {
        file.name: file.read_bytes() for file in root.iterdir()}


def test_what_cannot_be_moved_stays(lake, monkeypatch):
    """COMP-C25: a file that cannot be kept is not removed, and the request says why."""
    files, root = replicated(lake)
    lake.table()
    lake.insert(times=2)
    request = lake.compact()
    monkeypatch.setattr(Files, "checksum", lambda *_: (_ for _ in ()).throw(OSError("no checksum to be had")))

    before = lake.directories()
    assert [each.outcome.value for each in lake.cleaner(files).tick()] == ["failed"]
    assert lake.directories() == before
    assert "no checksum to be had" in lake.one(request).error_message
    assert not root.exists()


def test_the_look_at_what_is_ready_asks_no_more_for_many_than_for_one(lake, monkeypatch):
    """Every round looks at all of it; who is open begins after most of it."""
    asked, run = [], PgTx.sql

    def counted(pg, query, parameters=None):
        asked.append(query)
        return run(pg, query, parameters)

    counts = []
    for names in ("a", "bcdef"):
        for name in names:
            lake.table(name)
            lake.insert(f"d.{name}", times=2)
            lake.compact(what=f"d.{name}")
        later = lake.t.open()
        asked.clear()
        with monkeypatch.context() as watched:
            watched.setattr(PgTx, "sql", counted)
            assert {gate.verdict for _, gate in lake.cleaner().compactions.waiting()} == {CleaningVerdict.CLEAN}
        counts.append(len(asked))
        lake.t.commit(later)

    assert counts[0] == counts[1]


def test_what_others_have_inside_of_a_tables_directory_is_theirs(lake):
    """A base covers files of before its time, also in subdirectories; a table that lies in one is none of them."""
    lake.table()
    lake.table("t/raw/u")
    lake.db.once("INSERT INTO databases (catalog, name, location) VALUES ('hive', 'e', %s)", [f"file://{lake.path('t')}/e.db"])
    lake.put("d.t/raw/u", "delta_0000001_0000001_0000")
    lake.put("d.t", "e.db", "old/deep")
    lake.insert(times=2)
    lake.compact()

    assert lake.outcomes() == ["cleaned"]
    assert [name.partition("_v")[0] for name in lake.directories()] == ["base_0000002", "e.db", "raw"]
    assert lake.directories("d.t/raw/u") == ["delta_0000001_0000001_0000"]


def test_another_partition_inside_of_a_partitions_directory_stays(lake):
    lake.table("p", keys=["x"])
    lake.partition("x=1", "p")
    lake.partition("x=2", "p")
    lake.db.once("UPDATE partitions SET location = %s WHERE name = 'x=2'", [f"file://{lake.path('p')}/x=1/two"])
    lake.put("d.p/x=1/two", "delta_0000001_0000001_0000")
    lake.seed(1, "d.p")
    lake.insert("d.p/x=1", times=2)
    lake.compact(what="d.p/x=1")

    assert lake.outcomes() == ["cleaned"]
    assert [name.partition("_v")[0] for name in lake.directories("d.p/x=1")] == ["base_0000003", "two"]


def elsewhere(lake, place, table="u", partition="x=1", **parameters):
    """Create another table with a partition whose directory is at ``place``."""
    lake.table(table, keys=["x"], **parameters)
    lake.partition(partition, table)
    lake.db.once("UPDATE partitions SET location = %s WHERE name = %s AND table_id = (SELECT id FROM tables WHERE name = %s)",
                 [f"file://{lake.path(place)}", partition, table])


def test_a_partition_of_another_table_inside_of_a_tables_directory_stays(lake):
    lake.table()
    elsewhere(lake, "d.t/raw/x=1")
    lake.put("d.t/raw/x=1", "delta_0000001_0000001_0000")
    lake.put("d.t", "old")
    lake.insert(times=2)
    lake.compact()

    assert lake.outcomes() == ["cleaned"]
    assert [name.partition("_v")[0] for name in lake.directories()] == ["base_0000002", "raw"]
    assert lake.directories("d.t/raw/x=1") == ["delta_0000001_0000001_0000"]


def test_a_partition_of_another_table_is_not_taken_for_an_aborted_inserts(new_lake):
    """Its write ids are another table's; the table's own partitions are looked into."""
    lake = new_lake(aborted_txn_threshold=0)
    lake.table("p", keys=["y"])
    lake.partition("y=1", "p")
    elsewhere(lake, "d.p/raw")
    lake.abort("d.p")
    lake.put("d.p/raw", "delta_0000001_0000001_0000")
    lake.put("d.p/y=1", "delta_0000001_0000001_0000")

    assert lake.outcomes() == ["cleaned"]
    assert (lake.directories("d.p"), lake.directories("d.p/y=1")) == (["raw", "y=1"], [])
    assert lake.directories("d.p/raw") == ["delta_0000001_0000001_0000"]


@pytest.mark.parametrize(("parameters", "place", "outcome"), [
    ({}, "d.p/y=1", "failed"), ({"transactional": "false"}, "d.p/y=1", "cleaned"), ({}, "d.p", "failed"),
    ({}, "d.p/y=1/more", "cleaned"), ({}, "d.p/y", "cleaned")])
def test_an_aborted_insert_is_not_forgotten_where_two_tables_have_its_directory(new_lake, parameters, place, outcome):
    """Nobody removes what may be another's; forgotten, it would be read."""
    lake = new_lake(aborted_txn_threshold=0)
    lake.table("p", keys=["y"])
    lake.partition("y=1", "p")
    elsewhere(lake, place, **parameters)
    lake.abort("d.p")
    lake.put("d.p/y=1", "delta_0000001_0000001_0000")

    assert lake.outcomes() == [outcome]
    assert lake.directories("d.p/y=1") == ["delta_0000001_0000001_0000"] * (outcome == "failed")
    assert lake.remembered() == [("p", 1)] * (outcome == "failed")


def test_a_partition_inside_of_another_tables_directory_is_looked_into(new_lake):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table("p", keys=["y"])
    lake.table("u", location=f"file://{lake.path('p')}/raw")
    lake.partition("y=1", "p")
    lake.db.once("UPDATE partitions SET location = %s", [f"file://{lake.path('p')}/raw/y=1"])
    lake.abort("d.p")
    lake.put("d.p/raw", "delta_0000001_0000001_0000")
    lake.put("d.p/raw/y=1", "delta_0000001_0000001_0000")

    assert lake.outcomes() == ["cleaned"]
    assert (lake.directories("d.p/raw"), lake.directories("d.p/raw/y=1")) == (["delta_0000001_0000001_0000", "y=1"], [])


@pytest.mark.parametrize(("parameters", "outcome"), [({}, "waiting"), ({"transactional": "false"}, "cleaned")])
def test_a_directory_that_is_also_a_partition_of_another_table(lake, parameters, outcome):
    lake.table("p", keys=["y"])
    lake.partition("y=1", "p")
    elsewhere(lake, "d.p/y=1", **parameters)
    lake.insert("d.p/y=1", times=2)
    number = lake.compact(what="d.p/y=1")

    assert lake.outcomes() == [outcome]
    assert "the directory of partition d.u/" in (lake.one(number).error_message or "") or outcome == "cleaned"


def test_a_plain_table_over_its_directory_is_in_nobodys_way(lake):
    """As tools look at files: it has no write ids."""
    lake.table()
    lake.table("u", location=f"file://{lake.path('t')}", transactional="false")
    lake.insert(times=2)
    lake.compact()

    assert lake.outcomes() == ["cleaned"]


def test_nothing_is_removed_from_a_directory_that_two_tables_have(lake, test_clock):
    """A write id of the one says nothing of a file of the other."""
    lake.table()
    lake.table("u", location=f"file://{lake.path('t')}")
    lake.insert(times=2)
    asked = lake.compact()

    assert lake.outcomes() == ["waiting"]
    assert "is also the directory of table d.u" in lake.one(asked).error_message
    assert "is also the directory of table d.u" in lake.explained()[0].cleanings[0].text
    lake.drop("u")
    test_clock.advance(timedelta(minutes=5))
    assert lake.outcomes() == ["cleaned"]
