"""CALL system.begin() ... commit(): several statements of a session in one transaction."""

import gc
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.errors import SparkRuntimeException

from metastore.client import TxnManager, scan
from metastore.files import Files
from metastore.ids import table_name
from metastore.locks.rules import Operation
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.spark.check.table_check import check_table
from tests.support.spark_sessions import is_before
from tests.support.thrift_server import until

pytestmark = pytest.mark.spark

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


@pytest.fixture
def flat(catalog, db):
    catalog.sql(f"CREATE TABLE {db}.flat (id INT, name STRING) {ACID}")
    return f"{db}.flat"


@pytest.fixture
def parted(catalog, db):
    catalog.sql(f"CREATE TABLE {db}.parted (id INT) PARTITIONED BY (p INT) {ACID}")
    catalog.sql(f"INSERT INTO {db}.parted VALUES (1, 1), (2, 2)")
    return f"{db}.parted"


@pytest.fixture
def block(catalog, monkeypatch, open_transactions):
    """Yield a function that calls a procedure by name; ``call.began``: the kinds of all transactions that began. In the end none is open."""
    began, answer = [], planner_server.CALLS["begin"].answer
    monkeypatch.setitem(planner_server.CALLS, "begin", Method(lambda call: began.append(call.body.text("kind")) or answer(call)))

    def call(name):
        return catalog.sql(f"CALL spark_catalog.system.{name}()").collect()

    call.began = began
    yield call
    with suppress(SparkRuntimeException):  # no transaction is open, unless the test has failed
        call("rollback")
    until(lambda: open_transactions() == [])


def rows(session, name):
    return sorted(map(tuple, session.table(name).collect()))


def committed(lakehouse, name):
    """Return the committed rows, read without Spark."""
    return sorted(tuple(row.values()) for row in scan(name, uri=lakehouse.uri).to_arrow().to_pylist())


def files(client, name):
    root = Path(urlsplit(client.get_table(*name.split(".")).sd.location).path)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.name.endswith(".crc")}


def test_statements_of_a_block_are_one_transaction_and_see_what_those_before_have_written(catalog, spark, flat, parted, block, lakehouse, client) -> None:
    block("begin")
    assert block.began == []  # before anything needs it
    catalog.sql(f"INSERT INTO {flat} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    catalog.sql(f"UPDATE {flat} SET name = name || '!' WHERE id <= 2")
    catalog._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # Spark begins none then
    catalog.sql(f"SELECT id + 10 AS id, id AS p FROM {flat} WHERE name LIKE '%!'").writeTo(parted).append()
    catalog.sql(f"DELETE FROM {flat} WHERE id IN (SELECT p FROM {parted} WHERE id = 11)")
    catalog.sql(f"""MERGE INTO {flat} t USING (SELECT id - 9 AS id FROM {parted} WHERE id > 10) s ON t.id = s.id
                    WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')""")
    assert rows(catalog, flat) == [(2, "merged"), (3, "merged")]
    assert catalog.sql(f"SELECT count(*) FROM {flat} JOIN {parted} ON {flat}.id = p").first()[0] == 2
    assert [committed(lakehouse, flat), committed(lakehouse, parted)] == [[], [(1, 1), (2, 2)]]
    with pytest.raises(Exception, match="is open in this session already"):
        block("begin")
    block("commit")

    assert committed(lakehouse, flat) == rows(catalog, flat) == [(2, "merged"), (3, "merged")]
    assert committed(lakehouse, parted) == [(1, 1), (2, 2), (11, 1), (12, 2)]
    assert block.began.count("DEFAULT") == 1
    assert [row.operations for row in catalog.sql(f"CALL system.history('{flat}')").collect()] == ["delete, update"]
    for name in (flat, parted):
        assert [one for one in check_table(client, Files(), table_name(*name.split("."))) if not one.finding.is_unneeded] == []


def test_a_statement_that_fails_takes_back_what_it_wrote_and_the_others_stay(catalog, flat, parted, block, lakehouse, client, monkeypatch) -> None:
    announce = planner_server.CALLS["announce"]

    def refuse(_):
        raise OSError(5, "no more room")

    block("begin")
    catalog.sql(f"INSERT INTO {flat} VALUES (1, 'a')")
    catalog.sql(f"INSERT INTO {parted} VALUES (3, 3)")
    before = files(client, parted)
    with pytest.raises(Exception, match="not this one"):
        catalog.sql(f"INSERT INTO {flat} SELECT IF(id = 7, raise_error('not this one'), id), 'x' FROM range(8)")
    monkeypatch.setitem(planner_server.CALLS, "announce", Method(refuse))
    with pytest.raises(Exception, match="no more room"):
        catalog.sql(f"UPDATE {parted} SET id = id + 1")
    monkeypatch.setitem(planner_server.CALLS, "announce", announce)
    assert files(client, parted) == before
    catalog.sql(f"UPDATE {parted} SET id = id + 100 WHERE p = 3")
    block("commit")

    assert committed(lakehouse, flat) == [(1, "a")]
    assert committed(lakehouse, parted) == [(1, 1), (2, 2), (103, 3)]


def test_a_statement_that_fails_before_it_writes_leaves_the_others(catalog, flat, parted, block, lakehouse) -> None:
    """Its lock has declared a write, which has no write id yet."""
    block("begin")
    catalog.sql(f"INSERT INTO {flat} VALUES (1, 'a')")
    with pytest.raises(Exception, match="not this one"):
        catalog.sql(f"UPDATE {parted} SET id = IF(id > 0, raise_error('not this one'), id)")
    block("commit")
    assert committed(lakehouse, flat) == [(1, "a")]
    assert committed(lakehouse, parted) == [(1, 1), (2, 2)]


def test_a_block_whose_snapshot_lacks_a_change_says_who_made_it_and_what_to_do(catalog, flat, parted, block, lakehouse, client) -> None:
    block("begin")
    catalog.sql(f"INSERT INTO {flat} SELECT id, 'x' FROM {parted}")
    with TxnManager(client, host="elsewhere").transaction(user="trino", agent="q42") as txn:
        txn.add_dynamic_partitions(*parted.split("."), ["p=1"], Operation.UPDATE)
    told = rf"Transaction {txn.id} of trino@elsewhere \(q42\), at .* changed and committed {parted.replace('.', '/')}/p=1 first\. .* CALL system.rollback\(\)"
    for going_on in (lambda: catalog.sql(f"UPDATE {parted} SET id = 0"), lambda: rows(catalog, parted), lambda: block("commit")):
        with pytest.raises(SparkRuntimeException, match=told) as refused:
            going_on()
        assert refused.value.getCondition() == "WriteConflictError"
    block("rollback")
    assert (committed(lakehouse, flat), committed(lakehouse, parted)) == ([], [(1, 1), (2, 2)])


def test_what_cannot_be_taken_back_is_not_committed(catalog, parted, block, lakehouse, client, monkeypatch) -> None:
    """A file whose name Java cannot spell cannot be removed by Java."""
    root = Path(urlsplit(client.get_table(*parted.split(".")).sd.location).path)
    odd = []

    def refuse(_):
        [directory] = root.glob("p=1/delete_delta_*")
        odd.append(directory / "\udcff")  # the byte 255
        odd[0].touch()
        raise OSError(5, "no more room")

    block("begin")
    catalog.sql(f"INSERT INTO {parted} VALUES (3, 3)")
    with monkeypatch.context() as disturbed, pytest.raises(Exception, match="no more room"):
        disturbed.setitem(planner_server.CALLS, "announce", Method(refuse))
        catalog.sql(f"DELETE FROM {parted} WHERE p = 1")
    for going_on in (lambda: catalog.sql(f"INSERT INTO {parted} VALUES (4, 4)"), lambda: block("commit")):
        with pytest.raises(Exception, match="what it wrote could not be removed"):
            going_on()
    block("rollback")
    odd[0].unlink()
    assert committed(lakehouse, parted) == rows(catalog, parted) == [(1, 1), (2, 2)]
    assert not list(root.glob("p=3/delta_*"))


def test_what_an_own_overwrite_would_hide_is_refused(catalog, parted, block, lakehouse) -> None:
    """A base hides all deltas of its write id, and a transaction has one write id for a table."""
    block("begin")
    catalog.sql(f"INSERT INTO {parted} VALUES (7, 1), (8, 2)")
    catalog.sql(f"INSERT OVERWRITE {parted} PARTITION (p = 1) SELECT 10")
    catalog.sql(f"INSERT INTO {parted} VALUES (11, 2)")
    for later in (f"INSERT INTO {parted} VALUES (12, 1), (13, 2)", f"DELETE FROM {parted} WHERE id = 10", f"UPDATE {parted} SET id = 14 WHERE id IN (2, 10)",
                  f"INSERT OVERWRITE {parted} PARTITION (p = 1) SELECT 15", f"TRUNCATE TABLE {parted}"):
        with pytest.raises(Exception, match="has overwritten .*p=1 already"):
            catalog.sql(later)
    assert rows(catalog, parted) == [(2, 2), (8, 2), (10, 1), (11, 2)]
    catalog.sql(f"TRUNCATE TABLE {parted} PARTITION (p = 2)")
    block("commit")
    assert committed(lakehouse, parted) == rows(catalog, parted) == [(10, 1)]


def test_reads_of_a_block_are_of_one_moment_and_of_no_other_session(catalog, spark, flat, parted, block, lakehouse) -> None:
    other = spark.newSession()
    for key in ("spark.sql.catalog.spark_catalog", "spark.sql.catalog.spark_catalog.planner"):
        other.conf.set(key, catalog.conf.get(key))
    block("begin")
    assert rows(catalog, flat) == []
    other.sql(f"INSERT INTO {flat} VALUES (1, 'a')")
    other.sql(f"INSERT INTO {parted} VALUES (3, 3)")
    with pytest.raises(Exception, match="No transaction is open in this session"):
        other.sql("CALL system.commit()")
    assert (rows(catalog, flat), rows(catalog, parted)) == ([], [(1, 1), (2, 2)])
    frame = catalog.table(flat)
    if catalog.version >= "4.2":  # before, nothing tells EXPLAIN from the statement
        catalog.sql(f"EXPLAIN UPDATE {parted} SET id = 0").collect()
    with pytest.raises(SparkRuntimeException, match="Partition column p"):
        catalog.sql(f"UPDATE {parted} SET p = 0")
    assert rows(catalog, parted) == [(1, 1), (2, 2)]
    assert {row.type for row in catalog.sql(f"CALL system.show_locks('{parted}')").collect()} == {"SHARED_READ"}
    block("commit")
    assert rows(catalog, flat) == [tuple(row) for row in frame.collect()] == committed(lakehouse, flat) == [(1, "a")]


@pytest.mark.slow  # waits for the garbage collector
def test_the_block_of_a_session_that_is_gone_is_rolled_back(catalog, spark, flat, open_transactions, lakehouse) -> None:
    other = spark.newSession()
    for key in ("spark.sql.catalog.spark_catalog", "spark.sql.catalog.spark_catalog.planner"):
        other.conf.set(key, catalog.conf.get(key))
    other.sql("CALL spark_catalog.system.begin()")
    other.sql(f"INSERT INTO {flat} VALUES (1, 'a')")
    assert len(open_transactions()) == 1

    del other
    spark.newSession()  # PySpark keeps the last one
    gc.collect()

    until(lambda: catalog._jvm.System.gc() or open_transactions() == [])
    assert committed(lakehouse, flat) == []
    catalog.sql(f"INSERT OVERWRITE {flat} VALUES (2, 'b')")  # nobody keeps it out
    assert rows(catalog, flat) == [(2, "b")]


@pytest.mark.slow  # a Spark of its own
def test_the_block_of_a_spark_that_is_stopped_is_rolled_back(flat, open_transactions, lakehouse) -> None:
    """Also where its program goes on: nothing would end the heartbeats."""
    program = [sys.executable, "-m", "tests.acceptance.tables.stopping", lakehouse.uri, flat]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        said = running.stdout.readlines(1)
        left = open_transactions()
        running.communicate("")
    assert (said, left) == (["stopped\n"], [])
    assert committed(lakehouse, flat) == []


def test_caches_are_of_what_is_committed(catalog, parted, block, spark) -> None:
    """Spark shares them between its sessions."""
    other = spark.newSession()
    for key in ("spark.sql.catalog.spark_catalog", "spark.sql.catalog.spark_catalog.planner"):
        other.conf.set(key, catalog.conf.get(key))
    cached = catalog.table(parted).cache()
    assert cached.count() == 2
    block("begin")
    catalog.sql(f"INSERT INTO {parted} VALUES (3, 3)")
    assert (len(rows(catalog, parted)), len(rows(other, parted))) == (3, 2)
    catalog.sql(f"DELETE FROM {parted} WHERE id = 1")
    block("commit")
    if is_before(spark, "4.1"):
        catalog.catalog.clearCache()  # Spark 4.0 fills a cache anew by the plan that it has, which keeps its snapshot
    assert rows(catalog, parted) == rows(other, parted) == [(2, 2), (3, 3)]
    catalog.catalog.clearCache()


@pytest.mark.slow  # beside those of the session, or of Spark's own SQL
def test_the_loser_of_a_conflict_is_told_by_the_commit_and_is_in_no_block_then(catalog, parted, block, lakehouse, client, monkeypatch) -> None:
    block("begin")
    catalog.sql(f"UPDATE {parted} SET id = id + 1 WHERE p = 1")
    with TxnManager(client, host="elsewhere").transaction(user="trino", agent="q42") as txn:
        txn.add_dynamic_partitions(*parted.split("."), ["p=1"], Operation.UPDATE)
    with pytest.raises(Exception, match=f"Transaction {txn.id} of trino@elsewhere"):
        block("commit")
    assert rows(catalog, parted) == committed(lakehouse, parted) == [(1, 1), (2, 2)]
    with pytest.raises(Exception, match="No transaction is open"):
        block("rollback")


def test_what_is_done_at_once_is_refused_in_a_block(catalog, db, parted, block) -> None:
    block("begin")
    catalog.sql(f"DELETE FROM {parted} WHERE id = 1")
    for statement in (f"ALTER TABLE {parted} ADD COLUMNS (more INT)", f"DROP TABLE {parted}", f"ALTER TABLE {parted} RENAME TO {db}.other",
                      f"ALTER TABLE {parted} DROP PARTITION (p = 2)", f"CREATE TABLE {db}.made {ACID} AS SELECT 1 AS id",
                      f"ALTER TABLE {parted} ADD PARTITION (p = 9)"):
        with pytest.raises(Exception, match="at once, whatever becomes of a transaction"):
            catalog.sql(statement)
    catalog.sql(f"CREATE TABLE {db}.made USING parquet AS SELECT id FROM {parted}")
    block("rollback")
    assert rows(catalog, parted) == [(1, 1), (2, 2)]
    assert rows(catalog, f"{db}.made") == [(2,)]
