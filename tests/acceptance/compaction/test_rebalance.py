"""A rebalance as a user asks for it, carried out by the real loops; the Spark job runs in the session of the tests."""

from collections import Counter

import pytest
from pyspark.errors import PySparkException

from metastore.acid.bucket import decode
from tests.support.compacting import Compacting, Working

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def compacting(lakehouse, spark, nobody_reads):
    loops = Compacting(lakehouse.database_url, lakehouse.uri, spark)
    yield loops
    loops.close()


def test_a_user_asks_for_it_waits_for_it_and_writes_on(acid_session, db, compacting):
    table = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {table} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for number in range(3):
        acid_session.sql(f"INSERT INTO {table} SELECT id, concat('n', id % 7) FROM range({number * 10}, {number * 10 + 10})")
    acid_session.sql(f"DELETE FROM {table} WHERE id % 5 = 0")
    before = sorted(map(tuple, acid_session.table(table).collect()))

    call = acid_session.spark.sql
    [asked] = call(f"CALL system.compact('{table}', type => 'rebalance', buckets => 99)").collect()
    assert (asked.state, asked.accepted) == ("initiated", True)
    [shown] = call(f"CALL system.show_compactions('{table}', state => 'initiated', `limit` => 2)").collect()
    assert (shown.compaction_id, shown.type) == (asked.compaction_id, "REBALANCE")
    [aborted] = call(f"CALL system.abort_compactions(array({asked.compaction_id}))").collect()
    assert (aborted.compaction_id, aborted.aborted) == (asked.compaction_id, True)

    with Working(compacting.worker) as working:
        asks = f"CALL system.compact('{table}', type => 'rebalance', wait => true"
        [ended] = call(f"{asks}, buckets => 4, order_by => 'name DESC, id')").collect()
        with pytest.raises(PySparkException, match="is failed: .*no such column in its files"):
            call(f"{asks}, order_by => 'nothing')")
    assert (ended.state, working.outcomes) == ("ready for cleaning", ["compacted", "failed"])

    rows = acid_session.table(table, row_id=True).collect()
    assert sorted((row.id, row.name) for row in rows) == before
    ids = sorted((row.ROW__ID.rowid, decode(row.ROW__ID.bucketid).writer_id, row.name, row.id) for row in rows)
    assert [row_id for row_id, *_ in ids] == list(range(24))
    assert Counter(bucket for _, bucket, *_ in ids) == {0: 6, 1: 6, 2: 6, 3: 6}
    assert [row[2:] for row in ids] == sorted(sorted(row[2:] for row in ids), key=lambda row: row[0], reverse=True)
    acid_session.sql(f"UPDATE {table} SET name = 'new' WHERE id = 7")
    acid_session.sql(f"DELETE FROM {table} WHERE id = 8")
    assert sorted(map(tuple, acid_session.table(table).collect())) == sorted(
        (id_, "new" if id_ == 7 else name) for id_, name in before if id_ != 8)
