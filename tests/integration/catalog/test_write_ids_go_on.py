"""No write id is given out twice under a name, whatever table has it (ADR 0037)."""

import pytest

from metastore.errors import InvalidRequestError
from metastore.write_ids.service import ReplicatedState
from tests.support.transactions import named


def allocated(t, table="d.t", times=1):
    """Return the write ids that so many transactions get, each of which commits."""
    ids = []
    for _ in range(times):
        txn_id = t.open()
        ids += t.allocate(table, txn_id).values()
        t.commit(txn_id)
    return ids


def test_after_drop_and_create(d, t):
    d.create()
    assert allocated(t, times=3) == [1, 2, 3]
    d.drop_table("d", "t", True)
    d.create()

    reads = t.reads("d.t")
    assert (reads.high_watermark, reads.invalid) == (3, ())
    assert allocated(t, times=2) == [4, 5]
    assert t.rows("SELECT write_id FROM txn_write_ids ORDER BY 1") == [(4,), (5,)]


def test_after_drop_of_the_database(d, t):
    d.create()
    allocated(t, times=3)
    d.drop_database("d", True, True)
    d.database("d")
    d.create()

    assert allocated(t) == [4]


def test_a_table_that_is_renamed_leaves_its_mark(d, t):
    d.create()
    allocated(t, times=3)
    renamed = d.get_table("d", "t")
    renamed.tableName = "u"
    d.alter_table("d", "t", renamed)
    d.create()

    assert allocated(t, "d.u") == [4]
    assert allocated(t, "d.t") == [4]


def test_a_table_renamed_to_a_name_that_has_had_more(d, t):
    for name, times in (("t", 2), ("u", 5)):
        d.create(name)
        allocated(t, f"d.{name}", times)
    d.drop_table("d", "u", True)
    renamed = d.get_table("d", "t")
    renamed.tableName = "u"
    d.alter_table("d", "t", renamed)

    assert allocated(t, "d.u") == [6]
    assert t.rows("SELECT write_id FROM txn_write_ids ORDER BY 1") == [(1,), (2,), (6,)]


def test_an_owner_of_an_old_id_is_nobody_in_the_new_table(d, t):
    d.create()
    writer = t.open()
    t.allocate("d.t", writer)
    d.drop_table("d", "t", True)
    d.create()

    assert t.reads("d.t").invalid == ()
    assert t.allocate("d.t", writer) == {writer: 2}
    assert t.reads("d.t").invalid == (2,)


def test_a_seed_goes_behind_what_the_name_has_had(d, t):
    d.create()
    allocated(t, times=5)
    d.drop_table("d", "t", True)
    d.create()
    t.write_ids.seed_write_id(named("d.t"), 3)

    assert allocated(t) == [6]
    with pytest.raises(InvalidRequestError, match="have begun already"):
        t.write_ids.seed_write_id(named("d.t"), 30)


def test_a_replicated_table_has_its_sources_ids(d, t):
    """They are the source's to give: what is replicated again is numbered as the source numbers it."""
    d.create()
    allocated(t, times=5)
    d.drop_table("d", "t", True)
    d.create()
    t.write_ids.repl_tbl_writeid_state(ReplicatedState(named("d.t"), "d.t:3:2::2", "ann", "h"))

    reads = t.reads("d.t")
    assert (reads.high_watermark, reads.aborted) == (3, frozenset({2}))
    assert allocated(t) == [4]
