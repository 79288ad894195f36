"""CREATE TABLE ... AS SELECT: the table is there with the query's rows, or it is not there."""

import pytest

from metastore.client import LockNotAcquiredError
from metastore.errors import AlreadyExistsError, InvalidOperationError, TxnAbortedError
from metastore.spark import acid
from metastore.spark.commands import insert

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


def test_a_rule_that_rows_break_leaves_nothing(acid_session, db, lakehouse, monkeypatch):
    """CREATE TABLE AS declares no constraints in Hive; one that somebody adds before the rows are in counts all the same."""
    append = insert.append

    def later(work, table, rows):
        client, types = acid_session.client, acid_session.client.types
        client.add_check_constraint(types.AddCheckConstraintRequest([types.SQLCheckConstraint(
            table_db=db, table_name="t", check_expression="a < 3", dc_name="few", enable_cstr=True, validate_cstr=False,
            rely_cstr=False, catName="hive")]))
        return append(work, table, rows)

    monkeypatch.setattr(insert, "append", later)
    with pytest.raises(InvalidOperationError, match="CHECK few"):
        acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT id a FROM range(4)")
    assert tables(acid_session, db) == set()
    assert files(lakehouse, db) == []


def test_a_table_that_is_there_stays_as_it_is(acid_session, db):
    acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 1 a")
    held = acid_session.table(f"{db}.t")
    assert acid_session.sql(f"CREATE TABLE IF NOT EXISTS {db}.t {ACID} AS SELECT raise_error('no') a").first()[0] == 0
    with pytest.raises(AlreadyExistsError, match=r"t already exists"):
        acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 2 a")
    assert values(acid_session, f"{db}.t") == [1]
    assert [row.a for row in held.collect()] == [1]


def test_not_inside_a_block(acid_session, db):
    for block in (acid_session.transaction, acid_session.snapshot):
        with pytest.raises(InvalidOperationError, match="inside a transaction or snapshot block"), block():
            acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 1 a")
    assert tables(acid_session, db) == set()


def test_files_that_were_there_before_are_neither_rows_nor_removed(acid_session, db, tmp_path):
    (tmp_path / "000000_0").write_text("theirs\n")
    with pytest.raises(InvalidOperationError, match="has files"):
        acid_session.sql(f"CREATE TABLE {db}.t {TEXT.replace('TBL', f'LOCATION {tmp_path.as_uri()!r} TBL')} AS SELECT 'a' s")
    assert tables(acid_session, db) == set()
    assert (tmp_path / "000000_0").read_text() == "theirs\n"


def test_of_two_at_the_same_time_one_is_refused(acid_session, db, spark, monkeypatch):
    append = insert.append

    def meanwhile(work, table, rows):
        monkeypatch.setattr(insert, "append", append)
        with acid(spark) as other, pytest.raises(LockNotAcquiredError, match="concurrent CTAS"):
            monkeypatch.setattr(other._runner.tables, "exists", lambda name: False)  # as it was when it looked
            other.sql(f"CREATE TABLE IF NOT EXISTS {db}.t {ACID} AS SELECT 2 a")
        return append(work, table, rows)

    monkeypatch.setattr(insert, "append", meanwhile)
    acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 1 a")
    assert values(acid_session, f"{db}.t") == [1]


@pytest.mark.parametrize("others_write", [False, True])
def test_a_transaction_that_is_lost_meanwhile(acid_session, db, spark, lakehouse, monkeypatch, others_write):
    """Its locks are lost as well: the table goes, unless somebody else has written to it."""
    append = insert.append

    def lost(work, table, rows):
        monkeypatch.setattr(insert, "append", append)
        count = append(work, table, rows)
        acid_session.client.abort_txns(acid_session.client.types.AbortTxnsRequest([work.txn.id]))
        if others_write:
            with acid(spark) as other:
                other.sql(f"INSERT INTO {db}.t VALUES (5)")
        return count

    monkeypatch.setattr(insert, "append", lost)
    with pytest.raises(TxnAbortedError) as failure:
        acid_session.sql(f"CREATE TABLE {db}.t {ACID} AS SELECT 1 a")
    if not others_write:
        assert tables(acid_session, db) == set()
        assert files(lakehouse, db) == []
        return
    assert "it stays" in failure.value.__notes__[0]
    assert values(acid_session, f"{db}.t") == [5]
    assert {path.parent.name for path in files(lakehouse, db)} == {"delta_0000002_0000002_0000"}
