"""Write ids and partitions recorded without a decision: exactly what the decision would have come to."""

import random
from concurrent.futures import ThreadPoolExecutor

from metastore.ids import TableName
from metastore.txns.core.rules import Operation, TxnType
from metastore.txns.core.service import DynamicPartitions
from metastore.write_ids import store
from metastore.write_ids.rules import Allocation
from tests.support.transactions import EMPTY

STORED = {
    "owners": 'SELECT txn_id, db, "table", write_id FROM txn_write_ids ORDER BY 1, 2, 3, 4',
    "next": 'SELECT db, "table", next_write_id, purged_write_id FROM next_write_ids ORDER BY 1, 2'}

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def table(name):
    return TableName("hive", "db", name)


def story(t, seed):
    """Batches of allocations for transactions of all kinds; what was told and what is stored afterwards."""
    t.db.once(EMPTY)
    chance = random.Random(seed)
    answers = []
    known = [t.open() for _ in range(4)] + [t.open(kind=TxnType.READ_ONLY), 99]
    t.abort(known[0])
    t.commit(known[1])
    for _ in range(6):
        known.append(t.open())
        batch = [Allocation(table(chance.choice("tu")),
                            tuple(chance.sample(known if chance.random() < 0.3 else known[6:], 1)) * chance.randint(1, 2)
                            + ((t.open(),) if chance.random() < 0.5 else ()), chance.random() < 0.1)
                 for _ in range(chance.randint(1, 3))]
        answers += t.write_ids.allocate_table_write_ids(batch)
    return [str(one) for one in answers], {name: t.rows(query) for name, query in STORED.items()}


def test_the_decision_would_have_come_to_the_same(t, monkeypatch):
    original, quick_ways = store.allocate_uncontended, []
    for seed in range(40):
        monkeypatch.setattr(store, "allocate_uncontended", lambda *args: (
            ids := original(*args), quick_ways.append(ids is not None))[0])
        quick = story(t, seed)
        monkeypatch.setattr(store, "allocate_uncontended", lambda *_: None)

        assert quick == story(t, seed)
    assert set(quick_ways) == {True, False}


def test_ids_of_a_table_have_no_holes_whoever_asks(t):
    txn_ids = [t.open() for _ in range(40)]

    def allocated(txn_id):
        return t.write_ids.allocate_table_write_ids(
            [Allocation(table("t"), (txn_id,)), Allocation(table(f"u{txn_id % 3}"), (txn_id,))])

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(allocated, txn_ids))

    given = [answer[0][txn_id] for answer, txn_id in zip(answers, txn_ids, strict=True)]
    assert sorted(given) == list(range(1, 41))


def test_who_waits_for_the_first_row_of_a_table_has_none_locked(t):
    """Or whoever makes it, and wants the other table, would wait in turn."""
    t.write("db.a")
    writer = t.open()
    with ThreadPoolExecutor(2) as pool, t.db.begin() as pg:
        pg.sql("""INSERT INTO next_write_ids (catalog, db, "table", next_write_id, known_since)
                  VALUES ('hive', 'db', 'b', 1, metastore_now())""")
        waiting = pool.submit(t.write_ids.allocate_table_write_ids, [Allocation(table(name), (writer,)) for name in "ab"])
        while not pool.submit(t.rows, WAITING).result():
            assert not waiting.done()
        pg.sql("""SELECT FROM next_write_ids WHERE "table" = 'a' FOR UPDATE NOWAIT""")

    assert waiting.result() == [{writer: 2}, {writer: 1}]


def test_partitions_of_those_that_are_open_are_recorded_beside_those_that_are_not(t):
    one, gone, two, aborted = t.write("db.t"), t.open(), t.write("db.t"), t.open()
    t.commit(gone)
    t.abort(aborted)
    answers = t.txns.add_dynamic_partitions([
        DynamicPartitions(txn_id, table("t"), partitions, Operation.INSERT)
        for txn_id, partitions in [(one, ("p=1", "p=2")), (gone, ("p=3",)), (two, ()), (aborted, ("p=4",)),
                                   (99, ("p=5",)), (one, ("p=6",))]])

    assert [type(answer).__name__ for answer in answers] == [
        "NoneType", "NoSuchTxnError", "NoneType", "TxnAbortedError", "NoSuchTxnError", "NoneType"]
    assert t.rows("SELECT txn_id, partition FROM txn_components ORDER BY 1, 2") == [
        (one, ""), (one, "p=1"), (one, "p=2"), (one, "p=6"), (two, "")]
