"""The Cleaner waits for a reader with the tables that it reads: in every order of saying so and of cleaning (ADR 136)."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import acid_state
from metastore.catalog.store.acid_history import rename_table_history
from metastore.compaction.cleaning import service as cleaning_service
from metastore.compaction.cleaning import store as cleaning_store
from metastore.db.engine import Database
from metastore.errors import MetaError, NoSuchTxnError, TxnAbortedError
from metastore.ids import TableName
from metastore.locks.rules import LockType, Operation
from metastore.txns.core.rules import TxnType
from tests.support.lake import FakeRunner, Lake
from tests.support.thrift_server import until
from tests.support.transactions import Transactions

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@pytest.fixture
def lake(database, tmp_path):
    lake = Lake(database, tmp_path)
    for table in "tu":
        lake.table(table)
        lake.insert(f"d.{table}", times=2)
    return lake


@pytest.fixture
def reader(lake):
    return lake.t.open(kind=TxnType.READ_ONLY)


@pytest.fixture
def other(database):
    """Yield the calls of another server."""
    opened = Database(database.url, pool_size=2)
    yield Transactions(opened)
    opened.close()


def compacted(lake, what="d.t", kind="major"):
    lake.insert(what)
    return lake.compact(kind, what)


def sees(lake, what, seen):
    """Whether a snapshot finds all that it has been promised of a table."""
    txns, [write_ids] = seen
    listing = lake.files.listing(f"file://{lake.path(what)}")
    state = acid_state(listing, write_ids, txns, lambda path: "")
    found = {write_id for delta in state.deltas for write_id in range(delta.name.min_write_id, delta.name.max_write_id + 1)}
    return {1, 2} <= found or (state.base is not None and state.base.name.write_id >= 2)


def test_a_reader_of_one_table_is_in_the_way_of_that_only(lake, reader):
    """COMP-C07."""
    seen = lake.t.reads_only(reader, "d.t")
    compacted(lake, "d.u")
    mine = compacted(lake)

    assert sorted(lake.outcomes()) == ["cleaned", "waiting"]
    assert len(lake.directories("d.u")) == 1
    assert sees(lake, "d.t", seen)
    assert lake.one(mine).error_message == (
        f"waiting for transaction {reader} of ann@h1, which was open when the compaction committed and has said that it reads this table")

    [mine], [other] = lake.explained("d.t"), lake.explained("d.u")
    assert [(each.holders[0].txn.id, each.ends_with) for each in mine.cleanings] == [(reader, f"metastore txn abort {reader}")]
    assert "has said that it reads this table" in mine.cleanings[0].text
    assert ([holder.txn.id for holder in mine.delays], other.cleanings, other.delays) == ([reader], [], [])

    lake.t.commit(reader)
    assert lake.outcomes() == ["cleaned"]


@pytest.mark.parametrize("says", ["nothing", "no table", "the setting is off"])
def test_who_may_read_everything_is_in_the_way_of_everything(new_lake, says):
    lake = new_lake(use_min_history=says != "the setting is off")
    lake.table()
    reader = lake.t.open()
    if says != "nothing":
        lake.t.reads_only(reader, *(["d.u"] if lake.settings.use_min_history is False else []))
    lake.insert(times=2)
    request = lake.compact()

    assert lake.outcomes() == ["waiting"]
    assert lake.one(request).error_message.endswith(
        "may still read the old files" if says == "the setting is off" else "has not said what it reads")


def test_what_hive_needs_is_kept_whatever_it_says_is_the_lowest(lake, reader):
    """WID-14: Hive says the mark of its list and one, and goes on to read the files up to the mark."""
    seen = lake.t.reads("d.t")
    lake.t.write_ids.add_write_ids_to_min_history(reader, {TableName("hive", "d", "t"): seen.high_watermark + 1})
    lake.compact()

    assert lake.outcomes() == ["waiting"]
    assert len(lake.directories()) == 3


def test_a_compaction_reads_its_own_table_only(lake):
    """A job of hours is in nobody's way."""
    outcomes = []

    def during(_spec, _pulse):
        compacted(lake, "d.u")
        outcomes.extend(lake.outcomes())

    lake.request()
    assert lake.worker(FakeRunner(lake.files, during=during)).tick().outcome == "compacted"

    assert outcomes == ["cleaned"]


# ---------------------------------------------------------------------------------------------- tables named later
def test_a_table_that_was_cleaned_meanwhile_cannot_be_read_any_more(lake, reader):
    seen, _ = lake.t.reads_only(reader, "d.u")
    request = compacted(lake)
    assert lake.outcomes() == ["cleaned"]
    lake.db.once("DELETE FROM completed_compactions WHERE id = %s", [request])  # however long ago that was

    for _ in range(2):
        with pytest.raises(MetaError, match=rf"txnid:{reader} had said what it reads, without d\.t\."):
            lake.t.reads_only(reader, "d.u", "d.t", txns=seen.format())
    with pytest.raises(MetaError, match="new transaction"):
        lake.t.write_ids.add_write_ids_to_min_history(reader, {TableName("hive", "d", "t"): 1})
    later = lake.t.open()
    assert sees(lake, "d.t", lake.t.reads_only(later, "d.t"))


def test_a_table_that_was_not_cleaned_can_be_read_and_is_kept_from_then_on(lake, reader):
    txns, _ = lake.t.reads_only(reader, "d.u")
    lake.compact()
    seen = lake.t.reads_only(reader, "d.u", "d.t", txns=txns.format())

    assert lake.outcomes() == ["waiting"]
    assert (seen[0], sees(lake, "d.t", (txns, seen[1][1:]))) == (txns, True)


def test_a_cleaning_that_waits_takes_nothing_from_others(lake, reader):
    """The request waits for one reader: another may still name the table."""
    lake.t.reads_only(reader, "d.u")
    mine = lake.t.open()
    lake.t.reads_only(mine, "d.t")
    lake.compact()
    assert lake.outcomes() == ["waiting"]

    lake.t.reads_only(reader, "d.u", "d.t")


@pytest.mark.parametrize("first", ["reader", "cleaner"])
def test_a_table_is_named_while_the_cleaner_decides(lake, reader, other, monkeypatch, first):
    """Either of the two waits for the other, and goes by what it did."""
    lake.t.reads_only(reader, "d.u")
    lake.compact()
    waive = cleaning_store.insert_waived
    with ThreadPoolExecutor() as threads:
        named = []

        def name():
            return other.reads_only(reader, "d.u", "d.t")

        def insert_waived(pg, up_to, table):
            if first == "reader":
                name()
            waive(pg, up_to, table)
            if first == "cleaner":
                named.append(threads.submit(name))
                until(lambda: other.db.once(WAITING))

        monkeypatch.setattr(cleaning_service.store, "insert_waived", insert_waived)
        outcomes = lake.outcomes()
        if first == "reader":
            assert outcomes == ["waiting"]
            assert sees(lake, "d.t", (lake.t.reads_only(reader, "d.t")))
        else:
            assert outcomes == ["cleaned"]
            with pytest.raises(MetaError, match="had said what it reads"):
                named[0].result()


def test_the_cleaner_waits_for_who_is_about_to_name_the_table(lake, reader, other, monkeypatch):
    """The row is there, and not committed yet."""
    lake.t.reads_only(reader, "d.u")
    lake.compact()
    waive = cleaning_store.insert_waived
    with ThreadPoolExecutor() as threads, other.db.begin() as pg:
        pg.sql("SELECT FROM txns WHERE id = %s FOR NO KEY UPDATE", [reader])
        pg.sql("INSERT INTO min_history (txn_id, catalog, db, \"table\", min_write_id) VALUES (%s, 'hive', 'd', 't', 0)", [reader])
        cleaning = threads.submit(lake.outcomes)
        until(lambda: pg.sql(WAITING))
        pg.commit()
        assert cleaning.result() == ["waiting"]
    assert cleaning_store.insert_waived is waive


@pytest.mark.parametrize("moment", ["before", "after"])
def test_who_says_for_the_first_time_what_it_reads_while_the_cleaner_decides(lake, reader, other, monkeypatch, moment):
    """Before the Cleaner looks it is noted and passed over; after that it was one that may read everything."""
    lake.compact()
    [(request, _)] = lake.cleaner().compactions.waiting()
    gates = cleaning_service.CleanerService._gates

    def judged(self, pg, ready):
        if moment == "before":
            other.reads_only(reader, "d.u")
        found = gates(self, pg, ready)
        if moment == "after":
            other.reads_only(reader, "d.u")
        return found

    monkeypatch.setattr(cleaning_service.CleanerService, "_gates", judged)
    started = lake.cleaner().compactions.start(request)

    if moment == "after":
        assert started is None
        txns, lists = lake.t.reads_only(reader, "d.u", "d.t")
        assert sees(lake, "d.t", (txns, lists[1:]))
    else:
        assert started.request.id == request.id
        with pytest.raises(MetaError, match="had said what it reads"):
            lake.t.reads_only(reader, "d.u", "d.t")


# --------------------------------------------------------------------------------------------------- ends, and names
@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_nothing_is_left_of_readers_that_ended(lake, reader, ends):
    lake.t.reads_only(reader, "d.u")
    lake.compact()
    assert lake.outcomes() == ["cleaned"]
    assert lake.t.rows('SELECT "table", min_write_id FROM min_history ORDER BY 1') == [("t", -1), ("u", 0)]

    getattr(lake.t, ends)(reader)
    assert lake.t.rows("SELECT * FROM min_history") == []


@pytest.mark.parametrize(("ends", "error"), [("commit", NoSuchTxnError), ("abort", TxnAbortedError)])
def test_who_has_ended_cannot_say_what_it_reads(lake, reader, ends, error):
    getattr(lake.t, ends)(reader)

    with pytest.raises(error):
        lake.t.reads_only(reader, "d.t")
    assert lake.t.rows("SELECT * FROM min_history") == []


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_nobody_is_waited_for_and_noted_who_is_ending(lake, reader, other, ends):
    """Its row is locked: it would keep what is noted after its end."""
    lake.t.reads_only(reader, "d.u")
    request = lake.compact()
    with other.db.begin() as pg:
        pg.sql("SELECT FROM txns WHERE id = %s FOR UPDATE", [reader])
        assert lake.outcomes() == ["waiting"]
    getattr(lake.t, ends)(reader)

    assert lake.outcomes() == ["cleaned"]
    assert (lake.state(request), lake.t.rows("SELECT * FROM min_history")) == ("succeeded", [])


def test_who_reads_a_table_that_is_dropped_still_reads_it(lake, reader):
    lake.t.reads_only(reader, "d.t", "d.u")
    shadow = lake.folder / "kept"
    lake.path("t").rename(shadow)
    lake.path("t").mkdir()
    lake.drop_for_good("t")

    assert lake.t.rows('SELECT "table" FROM min_history ORDER BY 1') == [("t",), ("u",)]


def test_a_rename_and_the_end_of_a_reader_do_not_wait_for_each_other(lake, other):
    """Both go through components, locks and what is read, in this order."""
    reader = lake.t.write("d.t", Operation.SELECT, kind=LockType.SHARED_READ)
    lake.t.reads_only(reader, "d.t")

    def rename():
        with lake.db.begin() as pg:
            rename_table_history(pg, TableName("hive", "d", "t"), TableName("hive", "d", "new"))

    with ThreadPoolExecutor() as threads, other.db.begin() as pg:
        pg.sql("DELETE FROM locks WHERE txn_id = %s", [reader])
        renaming = threads.submit(rename)
        until(lambda: pg.sql(WAITING))
        assert pg.sql('DELETE FROM min_history WHERE txn_id = %s RETURNING "table"', [reader]) == [("t",)]
        pg.commit()
        renaming.result()
    assert lake.t.rows("SELECT FROM min_history") == []


# -------------------------------------------------------------------------------------------- what is not as it was
def test_a_compaction_that_commits_while_another_is_cleaned_hides_nothing(lake, monkeypatch):
    """Its result covers what the cleaned one has made: a reader in between sees only that."""
    lake.compact("minor")
    txn_id = lake.t.open(kind=TxnType.COMPACTION)
    reader = lake.t.open(kind=TxnType.READ_ONLY)
    seen = lake.t.reads_only(reader, "d.t")
    lake.put("d.t", f"base_0000002_v{txn_id:07d}")
    queue_of = cleaning_service.queue.select_queue_of

    def select_queue_of(pg, entity):
        rows = queue_of(pg, entity)
        with other_database(lake.db.url) as late:
            Transactions(late).commit(txn_id)
        return rows

    monkeypatch.setattr(cleaning_service.queue, "select_queue_of", select_queue_of)
    assert lake.outcomes() == ["cleaned"]

    assert sees(lake, "d.t", seen)


@contextmanager
def other_database(url):
    opened = Database(url, pool_size=1)
    yield opened
    opened.close()


def test_a_later_result_is_hidden_while_somebody_may_come_to_read_without_it(lake):
    """Two compactions of the same rows wait; one who sees the first result only has named another table."""
    lake.compact()
    assert lake.outcomes() == ["cleaned"]
    lake.insert(times=2)
    blocker = lake.t.open()
    first = lake.compact("minor")
    between = lake.t.open(kind=TxnType.READ_ONLY)
    txns, _ = lake.t.reads_only(between, "d.u")
    major = lake.t.open(kind=TxnType.COMPACTION)
    lake.put("d.t", f"base_0000004_v{major:07d}")
    lake.t.commit(major)
    lake.db.once("""INSERT INTO compaction_queue (catalog, db, "table", partition, state, type, enqueued_at, highest_write_id, txn_id,
                                                  next_txn_id, committed_at)
                    VALUES ('hive', 'd', 't', '', 'ready_for_cleaning', 'major', metastore_now(), 4, %(txn)s, %(txn)s, metastore_now())""",
                 {"txn": major})  # as Hive's Workers may
    lake.t.commit(blocker)
    assert lake.outcomes() == ["cleaned"]
    assert lake.state(first) == "succeeded"

    _, [_, write_ids] = lake.t.reads_only(between, "d.u", "d.t", txns=txns.format())
    state = acid_state(lake.files.listing(f"file://{lake.path('t')}"), write_ids, txns, lambda path: "")
    assert (state.base.name.write_id, [delta.name.max_write_id for delta in state.deltas]) == (2, [4])


def test_lists_are_those_of_the_two_calls(lake, reader):
    lake.abort()
    lake.begin("d.u")
    lake.t.open(kind=TxnType.READ_ONLY)
    from metastore.txns.core.rules import reader_snapshot

    txns = reader_snapshot(lake.t.txns.get_open_txns(), reader)
    expected = lake.t.lists(["d.t", "D.u", "d.none"], txns.format())
    found = lake.t.reads_only(reader, "d.t", "D.u", "d.none")

    assert found == (txns, expected)
    assert all(isinstance(one, ValidWriteIdList) for one in found[1])
