"""FROM source INSERT ... INSERT ...: one source, read once, into several tables in one transaction."""

from uuid import uuid4

import pytest
from pyspark.errors import PySparkException

from metastore.errors import InvalidOperationError
from metastore.spark.txn.blocks import ConstraintViolationError

pytestmark = pytest.mark.spark
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def rows(session, name):
    return sorted((tuple(row) for row in session.table(name).collect()), key=repr)


@pytest.fixture
def names(acid_session, db):
    """Tables a (id, v), b (id, v) by p, and src with the ids 1 to 4."""
    for name, keys in (("src", ""), ("a", ""), ("b", "PARTITIONED BY (p INT)")):
        acid_session.sql(f"CREATE TABLE {db}.{name} (id INT, v STRING) {keys} {ACID}")
    acid_session.sql(f"INSERT INTO {db}.src VALUES (1, 'x'), (2, 'y'), (3, 'x'), (4, NULL)")
    acid_session.sql(f"INSERT INTO {db}.b VALUES (9, 'old', 1), (9, 'kept', 2)")
    return {"src": f"{db}.src", "a": f"{db}.a", "b": f"{db}.b"}


def test_rows_go_where_each_insert_sends_them(acid_session, names):
    count = acid_session.sql("""FROM {src} s
        INSERT INTO {a} SELECT id, v WHERE v = 'x'
        INSERT OVERWRITE TABLE {b} PARTITION (p=1) SELECT s.id, v WHERE v IS NULL
        INSERT INTO TABLE {b} PARTITION (p=2) SELECT 7, 'more' WHERE id = 1
        INSERT OVERWRITE TABLE {b} PARTITION (p=3) SELECT max(id), v GROUP BY v HAVING v IS NOT NULL
        INSERT INTO TABLE {a} (id) SELECT id * 10 WHERE id IN (SELECT id FROM {src} WHERE id > 3)""".format(**names)).first()[0]
    assert count == 7
    assert rows(acid_session, names["a"]) == [(1, "x"), (3, "x"), (40, None)]
    assert rows(acid_session, names["b"]) == [(2, "y", 3), (3, "x", 3), (4, None, 1), (7, "more", 2), (9, "kept", 2)]


def test_tables_that_are_joined(acid_session, names):
    acid_session.sql("INSERT INTO {a} VALUES (1, 'one'), (5, 'five')".format(**names))
    acid_session.sql("""FROM {src} s LEFT JOIN {a} ON s.id = a.id LATERAL VIEW explode(array(10, 20)) e AS n
        INSERT INTO {a} SELECT s.id + n, a.v WHERE s.v = 'x' AND n = 10
        INSERT INTO {b} SELECT a.*, 4 WHERE s.id IS NULL
        INSERT INTO {b} PARTITION (p=5) SELECT e.n, max(s.v) WHERE a.id IS NOT NULL GROUP BY n""".format(**names))
    assert rows(acid_session, names["a"]) == [(1, "one"), (11, "one"), (13, None), (5, "five")]
    assert [row for row in rows(acid_session, names["b"]) if row[2] > 3] == [(10, "x", 5), (20, "x", 5)]


def test_the_source_is_evaluated_once_and_committed_once(acid_session, names, spark):
    view = f"v_{uuid4().hex}"
    spark.sql(f"CREATE TEMPORARY VIEW {view} AS SELECT CAST(rand() * 1000000000 AS INT) id FROM range(50)")
    acid_session.sql(f"WITH w AS (SELECT id FROM {view}) FROM w INSERT INTO {names['a']} SELECT id, 'r' "
                     f"INSERT INTO {names['b']} PARTITION (p) SELECT id, 'r', 7 INSERT INTO {names['a']} SELECT id, 'r'")
    drawn = sorted(row[0] for row in rows(acid_session, names["b"]) if row[2] == 7)
    assert len(set(drawn)) > 40
    assert [row[0] for row in sorted(rows(acid_session, names["a"]))] == sorted(drawn * 2)
    ids = {tuple(row["ROW__ID"]) for row in acid_session.table(names["a"], row_id=True).collect()}
    assert (len(ids), {one[0] for one in ids}) == (100, {1})
    spark.catalog.dropTempView(view)


def test_several_overwrite_the_partitions_that_their_rows_name(acid_session, names):
    """As Hive's acid_direct_insert_insert_overwrite.q: the rows of both, also where they meet in one partition."""
    acid_session.sql("""FROM {src}
        INSERT OVERWRITE TABLE {b} PARTITION (p) SELECT id, v, 1 WHERE v IS NOT NULL
        INSERT OVERWRITE TABLE {b} PARTITION (p) SELECT id, v, IF(id = 4, 1, 5) p WHERE id > 2 SORT BY id""".format(**names))
    assert rows(acid_session, names["b"]) == [
        (1, "x", 1), (2, "y", 1), (3, "x", 1), (3, "x", 5), (4, None, 1), (9, "kept", 2)]


def test_all_or_nothing(acid_session, names):
    acid_session.sql(f"ALTER TABLE {names['b']} ADD CONSTRAINT c CHECK (id <> 4)")
    with pytest.raises(ConstraintViolationError, match="CHECK c"):
        acid_session.sql("FROM {src} INSERT INTO {a} SELECT id, v INSERT INTO {b} SELECT id, v, 1".format(**names))
    assert rows(acid_session, names["a"]) == []


REFUSED = [
    ("FROM {src} INSERT INTO {b} PARTITION (p=1) SELECT id, v INSERT OVERWRITE TABLE {b} PARTITION (p=1) SELECT id, v",
     "has overwritten"),
    ("FROM {src} INSERT OVERWRITE TABLE {b} PARTITION (p=1) SELECT id, v INSERT OVERWRITE TABLE {b} PARTITION (p=1) SELECT id, v",
     "has overwritten"),
    ("FROM {src} INSERT OVERWRITE TABLE {b} PARTITION (p=1) SELECT id, v INSERT OVERWRITE TABLE {b} PARTITION (p) SELECT id, v, 1",
     "has overwritten"),
    ("FROM {src} INSERT OVERWRITE TABLE {a} SELECT id, v INSERT OVERWRITE TABLE {a} SELECT id, v", "has overwritten"),
    ("FROM {src} INSERT OVERWRITE TABLE {a} SELECT id, v INSERT INTO {a} SELECT id, v", "has overwritten"),
    ("FROM {src} s JOIN {a} t ON s.id = t.id INSERT INTO {a} SELECT id, s.v INSERT INTO {b} SELECT 1, 'x', 2", "AMBIGUOUS_REFERENCE"),
    ("FROM {src} INSERT INTO {a} SELECT id, v, 4 INSERT INTO {b} SELECT id, v, 1", "TOO_MANY_DATA_COLUMNS"),
]


def test_what_cannot_be_done_right_is_refused(acid_session, names):
    for statement, reason in REFUSED:
        with pytest.raises((InvalidOperationError, PySparkException, FileExistsError), match=reason):
            acid_session.sql(statement.format(**names))
        assert rows(acid_session, names["a"]) == []
        assert rows(acid_session, names["b"]) == [(9, "kept", 2), (9, "old", 1)]
