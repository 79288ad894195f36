"""What goes wrong with one table keeps no other from being compacted and cleaned."""

from dataclasses import replace
from datetime import timedelta

import pytest

from metastore.compaction.queue.store.entities import OwnCatalog
from metastore.errors import NoSuchObjectError, UnavailableError
from metastore.files import Files

LATER = timedelta(hours=1)
TROUBLES = [
    UnavailableError("d.a is being dropped or renamed by the upstream, try again"),
    NoSuchObjectError("no database d"),
    ValueError("Protocol not known: adl"),
    RuntimeError("what nobody thought of"),
]


class Catalog(OwnCatalog):
    """Has trouble with the table ``a``, for as long as ``trouble`` is set. ``gone``: nobody answers at all."""

    trouble = gone = None
    asked = 0

    def described(self, pg, entity):
        self.asked += 1
        if self.trouble is not None and entity.table.table == "a":
            raise self.trouble
        return super().described(pg, entity)

    def described_all(self, pg, entities):
        return {entity: found for entity in entities if (found := self.described(pg, entity)) is not None}

    def require_available(self):
        if self.gone is not None:
            raise self.gone


@pytest.fixture
def catalog():
    return Catalog()


@pytest.fixture
def lake(new_lake):
    lake = new_lake(aborted_txn_threshold=0)
    for name in "abc":
        lake.table(name)
    return lake


def on(loop, catalog, files=None):
    """Return the loop with this catalog."""
    return replace(loop, compactions=replace(loop.compactions, catalog=catalog), files=files or loop.files)


def said_of(lake, name):
    return [one.error_message for one in lake.shown(table=name) if one.state == "did_not_initiate"]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda error: type(error).__name__)
def test_others_are_compacted(lake, catalog, trouble, test_clock):
    for name in "abc":
        lake.insert(f"d.{name}", times=11)
    catalog.trouble = trouble
    initiator = on(lake.initiator(), catalog)

    report = initiator.tick()
    assert [str(one.entity) for one in report.queued] == ["d.b", "d.c"]
    assert list(report.failed) == ["compaction_check"]
    test_clock.advance(LATER)
    assert list(initiator.tick().failed) == ["compaction_check"]
    [said] = said_of(lake, "a")  # once for a cause
    assert str(trouble) in said
    catalog.trouble = None
    report = initiator.tick()
    assert ([str(one.entity) for one in report.queued], report.failed) == (["d.a"], {})


def test_what_cannot_be_measured_holds_up_nothing(lake, catalog):
    for name in "abc":
        lake.insert(f"d.{name}", times=2)
        lake.compact(what=f"d.{name}")
    catalog.trouble = TROUBLES[0]

    report = on(lake.initiator(), catalog).tick()
    assert (len(report.findings), report.listed) == (3, 2)


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda error: type(error).__name__)
def test_others_are_cleaned(lake, catalog, trouble, test_clock):
    ids = {}
    for name in "abc":
        lake.insert(f"d.{name}", times=2)
        ids[name] = lake.compact(what=f"d.{name}")
    lake.table("z")
    lake.abort("d.a")
    lake.abort("d.z")
    catalog.trouble = trouble
    cleaner = on(lake.cleaner(), catalog)

    report = cleaner.tick()
    assert {str(one.entity): one.outcome.value for one in report if one.id} == {
        "d.a": "failed", "d.b": "cleaned", "d.c": "cleaned"}
    aborts = {str(one.entity): one.is_failure for one in report if one.id is None}
    assert aborts == {"d.a": True, "d.z": False}
    assert str(trouble) in lake.one(ids["a"]).error_message
    assert any(str(trouble) in reason.text for reason in lake.explained("d.a")[0].cleanings)

    for _ in range(6):  # more often than a failure of its own would be tried again
        test_clock.advance(LATER)
        cleaner.tick()
    catalog.trouble = None
    test_clock.advance(24 * LATER)
    cleaner.tick()
    assert lake.state(ids["a"]) == ("succeeded" if isinstance(trouble, UnavailableError) else "failed")
    assert "delta_0000003_0000003_0000" not in lake.directories("a")


def test_a_table_that_becomes_unavailable_in_the_middle_of_its_cleaning(lake, catalog):
    ids = {}
    for name in "ab":
        lake.insert(f"d.{name}", times=2)
        ids[name] = lake.compact(what=f"d.{name}")

    class Listing(Files):
        def listing(self, uri):
            if uri.endswith("/a"):
                catalog.trouble = TROUBLES[0]
            return super().listing(uri)

    on(lake.cleaner(), catalog, Listing()).tick()
    assert (lake.state(ids["a"]), lake.state(ids["b"])) == ("ready_for_cleaning", "succeeded")


def test_where_nobody_answers_the_round_ends(lake, catalog):
    for name in "abc":
        lake.insert(f"d.{name}", times=11)
        lake.compact(what=f"d.{name}")
        lake.insert(f"d.{name}", times=11)
    catalog.trouble = catalog.gone = UnavailableError("upstream thrift://x does not answer")
    for loop in (lake.initiator(), lake.cleaner()):
        catalog.asked = 0
        with pytest.raises(UnavailableError, match="does not answer"):
            on(loop, catalog).tick()
        assert catalog.asked <= 4


def test_a_partition_that_cannot_be_read_is_explained_beside_the_others(lake, tmp_path):
    lake.table("p", keys=["x"])
    for name in ("x=1", "x=2"):
        lake.partition(name, "p")
        lake.insert(f"d.p/{name}", times=2)

    class Denied(Files):
        def listing(self, uri):
            if uri.endswith("x=1"):
                raise PermissionError(f"{uri}: permission denied")
            return super().listing(uri)

    lake.files = Denied()
    first, second = (each.compaction.text for each in lake.explained("d.p"))
    assert "permission denied" in first
    assert "Nothing is due" in second
