"""Which aborted writes a cleaning forgets: SQL brings every one of the entity, the rule decides."""

from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.acid.names import BaseName
from metastore.compaction.cleaning import store
from metastore.compaction.cleaning.rules import AbortedWrite, Covered, is_forgettable
from metastore.compaction.queue.rules.requests import Entity
from metastore.ids import TableName
from metastore.txns.core.rules import TxnType

HERE = Entity(TableName("hive", "d", "t"), "p=1")
IDS = st.none() | st.integers(1, 6)
BASES = st.builds(BaseName, st.integers(0, 6), st.integers(0, 9))
WRITES = st.tuples(
    st.sampled_from(["aborted", "aborted", "aborted", "open"]), st.sampled_from([TxnType.DEFAULT, TxnType.COMPACTION]), st.booleans(),
    st.sets(st.sampled_from("iudc"), min_size=1, max_size=3), IDS, IDS, st.sampled_from([("t", "p=1"), ("t", "p=1"), ("t", ""), ("u", "p=1")]))
"""State, type and may_publish of a transaction; its operations; the write ids of its components, and that it got later; where."""

INSERT = """
INSERT INTO txns (id, state, type, "user", host, started_at, last_heartbeat_at, may_publish)
VALUES (%(id)s, %(state)s, %(type)s, 'a', 'h', metastore_now(), metastore_now(), %(may_publish)s);
INSERT INTO txn_components SELECT %(id)s, 'hive', 'd', %(table)s, %(partition)s, operation, %(own)s
FROM unnest(%(operations)s::text[]) AS operation;
INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
SELECT %(id)s, 'hive', 'd', %(table)s, %(later)s::bigint WHERE %(later)s::bigint IS NOT NULL ON CONFLICT DO NOTHING"""


def test_what_the_rule_keeps_stays_and_all_else_goes(database):
    @settings(max_examples=40, deadline=None)
    @given(st.lists(WRITES, max_size=9), st.builds(Covered, BASES, BASES), st.none() | st.integers(1, 6), st.sets(st.integers(1, 6), max_size=2),
           st.integers(1, 4))
    def agree(writes, covered, up_to, keep, limit):
        expected, there = set(), set()
        with database.begin() as pg:
            pg.sql("DELETE FROM txn_components; DELETE FROM txn_write_ids; DELETE FROM txns")
            for txn_id, (state, kind, may_publish, operations, own, number, (table, partition)) in enumerate(writes, 1):
                later = number and number * 100 + txn_id  # a write id is of one transaction
                pg.sql(INSERT, {"id": txn_id, "state": state, "type": int(kind), "may_publish": may_publish and state == "aborted", "table": table,
                                "partition": partition, "operations": sorted(operations), "own": own, "later": later})
                for operation in operations:
                    one = AbortedWrite(txn_id, operation, own or later, operation == "c" and kind is TxnType.COMPACTION, may_publish)
                    there.add((txn_id, operation))
                    if state == "aborted" and (table, partition) == ("t", "p=1") and is_forgettable(one, up_to, keep, covered):
                        expected.add((txn_id, operation))
            last, count = None, 0
            while page := store.select_aborted(pg, HERE, None, last, limit=limit):
                count += store.delete_aborted(pg, HERE, page, up_to, keep, covered)
                last = page[-1]
            left = {tuple(row) for row in pg.sql("SELECT txn_id, operation FROM txn_components")}

        assert there - left == expected
        assert count == len(expected)

    agree()


def test_only_transactions_that_were_known_to_be_aborted_are_looked_at(database):
    with database.begin() as pg:
        for txn_id in (1, 2):
            pg.sql(INSERT, {"id": txn_id, "state": "aborted", "type": 0, "may_publish": False, "table": "t", "partition": "p=1",
                            "operations": ["i"], "own": txn_id, "later": None})
        assert [write.txn_id for write in store.select_aborted(pg, HERE, [2], None)] == [2]
