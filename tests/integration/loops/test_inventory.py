"""What was listed is kept, and only what is in doubt is listed again; candidates are worked on side by side."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from threading import Barrier

import pytest

from metastore.catalog.store import acid_history
from metastore.compaction.initiating.service import InitiatorService
from metastore.files import Files
from tests.support.transactions import named

LONG = 60
HOUR = timedelta(hours=1)


def counts(report):
    return report.listed, report.known


@pytest.fixture
def settled(lake, test_clock):
    """Two tables with three deltas each, both listed a while ago."""
    for name in ("a", "b"):
        lake.table(name)
        lake.insert(f"d.{name}", times=3)
    assert counts(lake.initiator().tick()) == (2, 0)
    test_clock.advance(HOUR)
    return lake


def test_what_has_not_changed_is_not_listed_again(settled):
    """By whichever process: its memory tells it nothing."""
    report = settled.initiator("other-1").tick()

    assert counts(report) == (0, 2)
    assert {str(each.entity): each.reason for each in report.findings} == dict.fromkeys(
        ("d.a", "d.b"), "3 deltas, not more than 10")


@pytest.mark.parametrize("change", ["commit", "compaction", "cleaning", "another place", "a day", "another table"])
def test_whatever_may_have_changed_it_has_it_listed(settled, test_clock, change):
    lake = settled
    if change == "commit":
        lake.insert("d.a")
    if change in {"compaction", "cleaning"}:
        lake.compact("minor", "d.a")
    if change == "cleaning":
        lake.insert("d.a")
        lake.initiator().tick()
        test_clock.advance(HOUR)
        lake.cleaner().tick()
    if change == "another place":
        lake.db.once("UPDATE tables SET location = location || '2' WHERE name = 'a'")
    if change == "a day":
        test_clock.advance(23 * HOUR)
    if change == "another table":
        lake.drop_for_good("a")
        lake.table("a")
        lake.insert("d.a")

    report = lake.initiator().tick()
    assert counts(report) == ((2, 0) if change == "a day" else (1, 1))
    assert counts(lake.initiator().tick()) == (1, 1) if change == "compaction" else (0, 2)


def test_what_an_open_transaction_kept_from_being_looked_at_is_listed_when_it_has_ended(lake, test_clock):
    """It was written and committed before the listing."""
    lake.table()
    writer, _ = lake.begin()
    lake.insert(times=11)
    assert "0 deltas" in lake.initiator().tick().findings[0].reason
    test_clock.advance(HOUR)
    lake.t.abort(writer)

    report = lake.initiator().tick()
    assert (counts(report), [str(each.entity) for each in report.queued]) == ((1, 0), ["d.t"])


def test_what_is_due_is_listed_before_it_is_queued(settled):
    """A table's properties may change without a write."""
    settled.parameters("a", **{"compactorthreshold.hive.compactor.delta.num.threshold": "2"})
    report = settled.initiator().tick()

    assert (counts(report), [str(each.entity) for each in report.queued]) == ((1, 1), ["d.a"])


def test_after_a_day_a_round_looks_at_everything_again(settled, test_clock):
    """Somebody who says nothing to the metastore may have put files there."""
    lake = settled
    initiator = lake.initiator()
    initiator.tick()
    test_clock.advance(HOUR)
    initiator.tick()
    lake.put("d.a", *(f"delta_0000003_0000003_{number:04d}" for number in range(1, 12)))
    test_clock.advance(HOUR)
    assert initiator.tick().findings == []
    test_clock.advance(24 * HOUR)
    initiator.tick()

    report = initiator.tick()
    assert (len(report.findings), [str(each.entity) for each in report.queued]) == (2, ["d.a"])


@pytest.mark.parametrize("seed", range(3))
def test_who_lists_everything_says_the_same(lake, test_clock, monkeypatch, seed):
    """Whatever happens to two tables: an Initiator that knows, and one that lists all and keeps nothing."""
    chance, writers, known = Random(seed), [], 0
    for name in ("a", "b"):
        lake.table(name)
        lake.put(f"d.{name}", "base_0000001", rows=60)
        lake.seed(1, f"d.{name}")
    for _ in range(30):
        what = chance.choice(["d.a", "d.b"])
        match chance.choice(["insert", "insert", "abort", "begin", "end", "end", "compact", "clean", "nothing"]):
            case "insert":
                lake.insert(what)
            case "abort":
                lake.abort(what)
            case "begin":
                writers.append(lake.begin(what)[0])
            case "end" if writers:
                chance.choice([lake.t.commit, lake.t.abort])(writers.pop(chance.randrange(len(writers))))
            case "compact":
                lake.request(chance.choice(["minor", "major"]), what)
                lake.worker().tick()
            case "clean":
                lake.cleaner().tick()
        test_clock.advance(timedelta(minutes=chance.choice([0, 1, 5])))
        said = {str(each.entity): (each.reason, each.known, each.id) for each in lake.initiator().tick().findings}
        lists = lake.initiator()
        lists.compactions = replace(lists.compactions, settings=replace(lake.settings, listing_max_age=timedelta(microseconds=1)))
        with monkeypatch.context() as forgetful:
            forgetful.setattr(InitiatorService, "keep", lambda *_: None)
            forgetful.setattr(InitiatorService, "forget_old_listings", lambda *_: None)
            by_listing = {str(each.entity): each for each in lists.tick().findings}
        for name, (reason, was_known, queued) in said.items():
            known += was_known
            if queued is None:
                assert (by_listing[name].reason, by_listing[name].id) == (reason, None)
            else:
                assert "initiated" in by_listing[name].reason
    assert known > 10


@pytest.mark.parametrize("ends", ["table", "partition", "rename", "partition rename"])
def test_listings_go_with_their_tables(lake, ends):
    lake.table(keys=["x"])
    lake.partition("x=1")
    lake.insert("d.t/x=1")
    lake.initiator().tick()
    lake.db.once("""INSERT INTO listings SELECT catalog, db, other."table", other.partition, location, listed_at, high_watermark, base_bytes,
        delta_bytes, deltas, delete_deltas, originals, raw_deltas, leftover_base
        FROM listings CROSS JOIN (VALUES ('u', 'x=1'), ('t', 'x=2')) AS other ("table", partition)""")  # the release before left these
    with lake.db.begin() as pg:
        {"table": lambda: acid_history.delete_table_history(pg, named("d.t")),
         "partition": lambda: acid_history.delete_partition_history(pg, named("d.t"), ["x=1"]),
         "rename": lambda: acid_history.rename_table_history(pg, named("d.t"), named("d.u")),
         "partition rename": lambda: acid_history.rename_partition_history(pg, named("d.t"), "x=1", "x=2")}[ends]()

    assert sorted(lake.db.once('SELECT "table", partition FROM listings')) == {
        "table": [("u", "x=1")], "partition": [("t", "x=2"), ("u", "x=1")],
        "rename": [("u", "x=1"), ("u", "x=2")], "partition rename": [("t", "x=2"), ("u", "x=1")]}[ends]


class Together(Files):
    """Lists and removes only when somebody else does too."""

    meeting = Barrier(2)

    def listing(self, uri):
        self.meeting.wait(LONG)
        return super().listing(uri)


def test_the_initiator_looks_at_several_at_a_time(new_lake):
    lake = new_lake(initiator_checks=2)
    for name in ("a", "b"):
        lake.table(name)
        lake.insert(f"d.{name}", times=11)
    lake.files = Together()

    assert [str(each.entity) for each in lake.initiator().tick().queued] == ["d.a", "d.b"]


def test_one_that_fails_stops_no_other(new_lake, monkeypatch):
    lake = new_lake(initiator_checks=2)
    for name in ("a", "b", "c"):
        lake.table(name)
        lake.insert(f"d.{name}", times=11)
    listing = Files.listing

    def denied(self, uri):
        if uri.endswith("/b"):
            raise PermissionError("b: permission denied")
        return listing(self, uri)

    monkeypatch.setattr(Files, "listing", denied)
    report = lake.initiator().tick()
    assert [str(each.entity) for each in report.queued] == ["d.a", "d.c"]
    assert [(each.state.value, each.error_message) for each in lake.shown(table="b")] == [
        ("did_not_initiate", "PermissionError: b: permission denied")]


@pytest.mark.parametrize("of", ["requests", "aborts"])
def test_the_cleaner_works_on_several_at_a_time(new_lake, of):
    lake = new_lake(cleaner_threads=2, aborted_txn_threshold=0)
    for name in ("a", "b"):
        lake.table(name)
        if of == "aborts":
            lake.abort(f"d.{name}")
        else:
            lake.insert(f"d.{name}", times=2)
            lake.compact("major", f"d.{name}")

    cleaned = lake.cleaner(Together()).tick()
    assert [(str(each.entity), each.outcome.value) for each in cleaned] == [("d.a", "cleaned"), ("d.b", "cleaned")]


def test_a_table_is_cleaned_before_its_partitions_and_not_beside_them(new_lake, monkeypatch):
    """Both look at the directories of the partitions."""
    lake = new_lake(cleaner_threads=2, aborted_txn_threshold=0)
    lake.table(keys=["x"])
    lake.partition("x=1")
    lake.abort("d.t/x=1")
    lake.db.once("""INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
        SELECT txn_id, catalog, db, "table", '', 'i', write_id FROM txn_components""")
    inside, listing, most = [], Files.listing, []

    def watched(self, uri):
        inside.append(uri)
        most.append(len(inside))
        try:
            return listing(self, uri)
        finally:
            inside.remove(uri)

    monkeypatch.setattr(Files, "listing", watched)
    cleaned = [str(each.entity) for each in lake.cleaner().tick()]
    assert (cleaned, max(most)) == (["d.t", "d.t/x=1"], 1)


def test_candidates_are_looked_up_at_once_and_alone_if_one_is_in_the_way(settled, monkeypatch):
    asked, inputs = [], InitiatorService.inputs

    def looked_up(service, entities):
        asked.append([str(entity) for entity in entities])
        if len(entities) > 1 and broken:
            raise ValueError("one of them")
        return inputs(service, entities)

    monkeypatch.setattr(InitiatorService, "inputs", looked_up)
    broken = False
    assert counts(settled.initiator().tick()) == (0, 2)
    assert asked == [["d.a", "d.b"], []]
    broken = True
    assert counts(settled.initiator().tick()) == (0, 2)
    assert asked[2:] == [["d.a", "d.b"], ["d.a"], ["d.b"], []]


def test_directories_that_were_cleaned_meanwhile_are_looked_up_again(lake, test_clock):
    """The lists are older than the base that is there now: a cleaning came between."""
    lake.table()
    lake.insert(times=3)
    test_clock.advance(HOUR)

    class Late(Files):
        def listing(self, uri):
            if not late:
                late.append(uri)
                lake.compact()
                lake.cleaner().tick()
            return super().listing(uri)

    late = []
    lake.files = Late()
    initiator = lake.initiator()
    lake.files = Files()

    [finding] = initiator.tick().findings
    assert finding.reason == "0 deltas, not more than 10"
    assert [each.state.value for each in lake.shown()] == ["succeeded"]


def test_loops_leave_half_of_the_connections_to_others(new_lake):
    lake = new_lake(initiator_checks=1000, cleaner_threads=1000)
    half = lake.db.pool.size // 2

    assert lake.initiator().compactions.threads == lake.cleaner().compactions.threads == half
