"""CREATE TABLE ... AS SELECT: the table is there with the query's rows, or it is not there."""

import pytest
from pyspark.errors import AnalysisException

from metastore.errors import InvalidOperationError

pytestmark = pytest.mark.spark

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
TEXT = "STORED AS TEXTFILE TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


def tables(session, db):
    return set(session.client.get_all_tables(db))


def files(lakehouse, db):
    """Those that are not hidden: a task that is stopped may leave something in staging even then."""
    root = lakehouse.warehouse / f"{db}.db"
    return [path for path in root.rglob("*") if path.is_file() and not any(
        part.startswith((".", "_")) for part in path.relative_to(root).parts)]


def locks(session, db):
    return session.client.show_locks(session.client.types.ShowLocksRequest(dbname=db)).locks


def values(session, name):
    return sorted(row[0] for row in session.table(name).collect())


@pytest.mark.parametrize(("shape", "query", "reason", "mended"), [
    (TEXT, "SELECT 1 a, 'two\\nlines' s", "line's end", "SELECT 1 a, 'a line' s"),
    (ACID, "SELECT IF(id = 3, raise_error('no'), id) a FROM range(4)", "USER_RAISED_EXCEPTION", "SELECT id a FROM range(4)"),
    (ACID, "SELECT (SELECT id FROM range(2)) a", "More than one row", "SELECT (SELECT id FROM range(1)) a"),
    (f"PARTITIONED BY (p) {ACID}", "SELECT IF(id = 3, raise_error('no'), id) a, id % 2 p FROM range(4)", "USER_RAISED_EXCEPTION",
     "SELECT id a, id % 2 p FROM range(4)"),
], ids=["serde", "job", "cardinality", "partitions"])
def test_what_fails_leaves_nothing(acid_session, db, lakehouse, shape, query, reason, mended):
    with pytest.raises(Exception, match=reason):
        acid_session.sql(f"CREATE TABLE {db}.t {shape} AS {query}")
    assert tables(acid_session, db) == set()
    assert files(lakehouse, db) == []
    assert locks(acid_session, db) == []
    written = acid_session.sql(f"CREATE TABLE IF NOT EXISTS {db}.t {shape} AS {mended}").first()[0]
    assert acid_session.table(f"{db}.t").count() == written > 0


def test_a_table_that_is_there_stays_as_it_is(acid_session, db):
    acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 1 a")
    held = acid_session.table(f"{db}.t")
    assert acid_session.sql(f"CREATE TABLE IF NOT EXISTS {db}.t {ACID} AS SELECT raise_error('no') a").collect() == []
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 2 a")
    assert values(acid_session, f"{db}.t") == [1]
    assert [row.a for row in held.collect()] == [1]


def test_not_inside_a_block(acid_session, db):
    for block in (acid_session.transaction, acid_session.snapshot):
        with pytest.raises(InvalidOperationError, match="inside one use INSERT INTO|only reads"), block():
            acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 1 a")
    assert tables(acid_session, db) == set()
