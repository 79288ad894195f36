"""ACID tables from PySpark: each statement, checked against the same change done on a plain Python list, and by Hive's reader."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import functions as F

from metastore.acid.snapshots import ValidWriteIdList
from metastore.client.heartbeat import LostError
from metastore.errors import (
    InvalidInputError,
    InvalidOperationError,
    MetastoreError,
    NoSuchObjectError,
    TxnAbortedError,
)
from metastore.files import Files
from metastore.ids import table_name
from metastore.planner import calls
from metastore.spark import acid
from metastore.spark.check.table_check import check_table

pytestmark = pytest.mark.spark


@pytest.fixture
def flat(acid_session, db):
    """Create an unpartitioned table with the rows (1, a), (2, b), (3, c), (4, d)."""
    name = f"{db}.flat"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    return name


@pytest.fixture
def parted(acid_session, db):
    """Create a table partitioned by a string with awkward values."""
    name = f"{db}.parted"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (day STRING) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'a', 'x/y'), (2, 'b', 'ä b%'), (3, 'c', NULL), (4, 'd', 'x/y')")
    return name


def rows(session, name):
    return sorted((tuple(row) for row in session.table(name).collect()), key=repr)


def open_txns(session):
    """Ids of the open transactions, other tests' included."""
    return {txn.id for txn in session.client.get_open_txns_info().open_txns if txn.state == 3}


def locks_of(session, txn_id):
    return session.client.show_locks(session.client.types.ShowLocksRequest(txnid=txn_id)).locks


def hive_rows(oracle, session, name):
    """Return the rows of an unpartitioned table that Hive's reader shows with the newest snapshot."""
    db, table = name.split(".")
    types = session.client.types
    [answer] = session.client.get_valid_write_ids(types.GetValidWriteIdsRequest(fullTableNames=[name])).tblValidWriteIds
    found = session.client.get_table(db, table)
    write_ids = ValidWriteIdList(name, answer.writeIdHighWaterMark, answer.minOpenWriteId or None,
                                 tuple(answer.invalidWriteIds), frozenset(answer.invalidWriteIds))
    columns = {column.name: column.type for column in found.sd.cols}
    return oracle.rows(Path(found.sd.location.removeprefix("file:").replace("///", "/")), write_ids, columns)


def test_insert_and_read(acid_session, flat):
    assert rows(acid_session, flat) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert acid_session.sql(f"SELECT count(*) FROM {flat} t WHERE t.id > 2").first()[0] == 2
    assert acid_session.table(flat).where("id = 3").select("name").collect()[0][0] == "c"


@pytest.mark.parametrize("tasks", [1, 3])
def test_an_insert_makes_as_many_files_as_its_rows_have_tasks(acid_session, flat, spark, tasks):
    acid_session.insert(flat, spark.range(5, 50, numPartitions=4).selectExpr("CAST(id AS INT) AS id", "'x' AS name").coalesce(tasks))
    place = Path(acid_session.client.get_table(*flat.split(".")).sd.location.removeprefix("file:").replace("///", "/"))
    newest = max(place.glob("delta_*"))
    assert sorted(file.name for file in newest.glob("bucket_*")) == [f"bucket_{number:05}" for number in range(tasks)]


def test_update_delete_and_merge_say_the_same_as_hive(acid_session, flat, oracle):
    assert acid_session.update(flat, {"name": "concat(name, '!')"}, "id <= 2") == 2
    assert acid_session.delete(flat, "id = 3") == 1
    source = acid_session.spark.createDataFrame([(2, "two"), (4, None), (9, "nine")], "id INT, name STRING")
    changed = acid_session.merge(flat, source, "t.id = s.id", [
        "WHEN MATCHED AND s.name IS NULL THEN DELETE", "WHEN MATCHED THEN UPDATE SET name = s.name",
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"])

    assert changed == 3
    assert rows(acid_session, flat) == [(1, "a!"), (2, "two"), (9, "nine")]
    seen_by_hive = hive_rows(oracle, acid_session, flat)
    assert sorted(tuple(row.values) for row in seen_by_hive) == [(1, "a!"), (2, "two"), (9, "nine")]
    assert len({row.row_id for row in seen_by_hive}) == 3
    ours = {tuple(row["ROW__ID"]) for row in acid_session.table(flat, row_id=True).collect()}
    assert ours == {row.row_id for row in seen_by_hive}


def test_new_rows_and_new_versions_in_one_file_have_ids_of_their_own(acid_session, db, oracle):
    """One bucket, so that one task numbers what a MERGE updates and what it inserts; two MERGEs in one transaction."""
    name = f"{db}.one"
    acid_session.sql(f"CREATE TABLE {name} (id INT, v STRING) CLUSTERED BY (id) INTO 1 BUCKETS STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    acid_session.sql(f"INSERT INTO {name} SELECT CAST(id AS INT), 'old' FROM range(6)")
    with acid_session.transaction():
        for last in (8, 10):
            acid_session.sql(f"MERGE INTO {name} t USING (SELECT CAST(id AS INT) AS id FROM range(2, {last})) s ON t.id = s.id "
                             "WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = v || '+' "
                             "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')")

    expected = [(0, "old"), (1, "old"), (2, "old++"), (3, "new"), (4, "old++"), (5, "old++"), (6, "new+"), (7, "new+"),
                (8, "new"), (9, "new")]
    assert rows(acid_session, name) == expected
    assert sorted(tuple(row.values) for row in hive_rows(oracle, acid_session, name)) == expected
    assert check_table(acid_session.client, Files(), table_name(db, "one")) == []
    ids = [row["ROW__ID"] for row in acid_session.table(name, row_id=True).collect()]
    assert sorted((one["writeid"], one["bucketid"] & 0xFFF, one["rowid"]) for one in ids) == [
        (1, 0, 0), (1, 0, 1), (2, 1, 0), *((2, 1, at) for at in range(1, 8))]


def test_hive_reads_no_row_of_an_aborted_writer(acid_session, flat, oracle):
    with pytest.raises(ZeroDivisionError), acid_session.transaction():
        acid_session.insert(flat, acid_session.spark.sql("SELECT 7 id, 'x' name"))
        raise ZeroDivisionError

    assert len(hive_rows(oracle, acid_session, flat)) == 4


def test_partitions(acid_session, parted):
    assert acid_session.update(parted, {"name": "upper(name)"}, "day = 'x/y' AND id = 4") == 1
    assert acid_session.delete(parted, "day IS NULL") == 1
    assert rows(acid_session, parted) == [(1, "a", "x/y"), (2, "b", "ä b%"), (4, "D", "x/y")]
    assert acid_session.table(parted).where("day = 'ä b%'").count() == 1
    names = [row[0] for row in acid_session.sql(f"SHOW PARTITIONS {parted}").collect()]
    assert names == ["day=null", "day=x%2Fy", "day=ä b%25"]


def test_the_same_row_id_in_two_partitions_is_two_rows(acid_session, db):
    name = f"{db}.twins"
    acid_session.sql(f"CREATE TABLE {name} (v INT) PARTITIONED BY (p INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for part in (1, 2):
        acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p={part}) SELECT 0")
    with acid_session.transaction():
        for part in (1, 2):
            acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p={part}) SELECT {part}")
    acid_session.delete(name, "p = 1")
    assert rows(acid_session, name) == [(2, 2)]


@pytest.mark.slow  # beside the same of Spark's own SQL, in tests/acceptance/spark_catalog/test_writes.py
def test_overwrite_and_truncate(acid_session, flat, parted):
    acid_session.overwrite(flat, acid_session.spark.sql("SELECT 'only' name, 5 id"))
    assert rows(acid_session, flat) == [(5, "only")]
    acid_session.sql(f"INSERT OVERWRITE TABLE {parted} PARTITION (day='x/y') SELECT 8, 'new'")
    assert rows(acid_session, parted) == [(2, "b", "ä b%"), (3, "c", None), (8, "new", "x/y")]
    acid_session.sql(f"INSERT OVERWRITE TABLE {parted} PARTITION (day='x/y') SELECT 8, 'none' WHERE false")
    assert rows(acid_session, parted) == [(2, "b", "ä b%"), (3, "c", None)]
    assert acid_session.sql(f"TRUNCATE TABLE {parted} PARTITION (day='ä b%')").first()[0] == 1
    assert rows(acid_session, parted) == [(3, "c", None)]
    assert acid_session.sql(f"TRUNCATE TABLE {parted}").first()[0] == 1
    assert rows(acid_session, parted) == []


@pytest.mark.parametrize("kind", ["default", pytest.param("insert_only", marks=pytest.mark.slow)])
def test_what_hive_4_truncates_reads_as_empty(acid_session, db, kind):
    """Its request asks the server for an empty base under a write id of its transaction."""
    name, client, types = f"{db}.t", acid_session.client, acid_session.client.types
    acid_session.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (p INT) STORED AS ORC TBLPROPERTIES "
                     f"('transactional'='true', 'transactional_properties'='{kind}')")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")

    def truncate(partitions, end):
        [txn_id] = client.open_txns(types.OpenTxnRequest(num_txns=1, user="ann", hostname="h1")).txn_ids
        [given] = client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(
            dbName=db, tableName="t", txnIds=[txn_id])).txnToWriteIds
        client.truncate_table_req(types.TruncateTableRequest(
            db, "t", partitions, writeId=given.writeId, environmentContext=types.EnvironmentContext({"truncateSkipDataDeletion": "true"})))
        end(txn_id)

    truncate(["p=1"], lambda txn_id: client.abort_txn(types.AbortTxnRequest(txnid=txn_id)))
    assert rows(acid_session, name) == [(1, 1), (2, 2)]
    truncate(["p=1"], lambda txn_id: client.commit_txn(types.CommitTxnRequest(txnid=txn_id)))
    assert rows(acid_session, name) == [(2, 2)]
    truncate(None, lambda txn_id: client.commit_txn(types.CommitTxnRequest(txnid=txn_id)))
    assert rows(acid_session, name) == []
    acid_session.sql(f"INSERT INTO {name} VALUES (3, 1)")
    assert rows(acid_session, name) == [(3, 1)]


def test_nobody_waits_for_a_lock_of_his_own(acid_session, flat):
    """A frame locks nothing between its actions, and is read in the transaction that replaces its table."""
    late = acid_session.table(flat).where("id > 2")
    assert acid_session.overwrite(flat, late) == 2
    assert sorted(map(tuple, late.collect())) == [(3, "c"), (4, "d")]
    acid_session.sql(f"ALTER TABLE {flat} ADD COLUMNS (more INT)")
    with acid_session.transaction():
        acid_session.overwrite(flat, acid_session.table(flat).where("id > 3"))
    assert rows(acid_session, flat) == [(4, "d", None)]


def test_bucketed_rows_go_where_hives_hash_sends_them(acid_session, db):
    name = f"{db}.bucketed"
    acid_session.sql(f"CREATE TABLE {name} (k STRING, v INT) CLUSTERED BY (k) INTO 3 BUCKETS STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    acid_session.insert(name, acid_session.spark.range(40).select(
        F.concat(F.lit("ключ"), "id").alias("k"), F.col("id").cast("int").alias("v")))
    acid_session.update(name, {"v": "v + 1"}, "v < 10")
    new = acid_session.spark.range(30, 70).selectExpr("concat('ключ', id) AS k", "CAST(id AS INT) AS v")
    assert acid_session.merge(name, new, "t.k = s.k", ["WHEN NOT MATCHED THEN INSERT *"]) == 30
    from metastore.acid.hashes import bucket_of
    from metastore.acid.types import parse_type
    found = acid_session.table(name, row_id=True).collect()
    assert len(found) == 70
    for row in found:
        assert (row["ROW__ID"]["bucketid"] >> 16) & 0xFFF == bucket_of([row["k"]], [parse_type("string")], 3, 2)
    with pytest.raises(InvalidOperationError, match="Bucketing column k"):
        acid_session.update(name, {"k": "'z'"})


@pytest.mark.parametrize("kind", ["", ", 'transactional_properties'='insert_only'"], ids=["full", "insert-only"])
@pytest.mark.parametrize("buckets", [pytest.param("", marks=pytest.mark.slow), "CLUSTERED BY (id) INTO 2 BUCKETS"], ids=["flat", "bucketed"])
def test_columns_may_have_any_name(acid_session, db, buckets, kind):
    """Those of events, of rows that Debezium makes of changes, and those that routed rows once."""
    names = ("operation", "row", "rowid", "bucket", "__deleted", "__op", "__row_id", "_writer", "_partition")
    name, columns = f"{db}.t", ", ".join(f"`{one}` INT" for one in names)
    acid_session.sql(f"CREATE TABLE {name} (id INT, {columns}) PARTITIONED BY (p INT) {buckets} "
                     f"STORED AS ORC TBLPROPERTIES ('transactional'='true'{kind})")
    values = [(id_, *range(10 * id_, 10 * id_ + len(names)), id_ % 2) for id_ in range(1, 5)]
    acid_session.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, values))}")
    assert rows(acid_session, name) == values
    if kind:
        return
    acid_session.sql(f"UPDATE {name} SET `_partition` = 0 WHERE `_writer` = 27")
    acid_session.sql(f"DELETE FROM {name} WHERE `__deleted` = 34")
    acid_session.sql(f"MERGE INTO {name} t USING (SELECT 1 AS id UNION ALL SELECT 5) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
                     f"`__row_id` = 0 WHEN NOT MATCHED THEN INSERT (id, {', '.join(f'`{one}`' for one in names)}, p) "
                     f"VALUES (s.id, {', '.join('9' * len(names))}, 1)")
    assert rows(acid_session, name) == [
        (1, 10, 11, 12, 13, 14, 15, 0, 17, 18, 1), (2, 20, 21, 22, 23, 24, 25, 26, 27, 0, 0), values[3], (5, *[9] * len(names), 1)]


@pytest.mark.parametrize("columns", ["`__acid_writer` INT", "id INT) PARTITIONED BY (`__acid_writer` INT"], ids=["column", "key"])
def test_a_column_called_like_one_of_ours_is_refused(acid_session, db, columns):
    name, acid_table = f"{db}.t", "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    with pytest.raises(InvalidOperationError, match=f"{name} has a column __acid_writer"):
        acid_session.sql(f"CREATE TABLE {name} ({columns}) {acid_table}")
    acid_session.sql(f"CREATE TABLE {name} ({columns}) STORED AS ORC")
    with pytest.raises(InvalidOperationError, match="has a column __acid_writer"):
        acid_session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('transactional'='true')")
    table = acid_session.client.get_table(db, "t")
    table.parameters["transactional"] = "true"   # what Hive may do, which knows nothing of our names
    acid_session.client.alter_table(db, "t", table)
    with pytest.raises(InvalidOperationError, match=f"{name} has a column __acid_writer"):
        acid_session.sql(f"INSERT INTO {name} VALUES (1)")

    acid_session.sql(f"CREATE TABLE {db}.u (id INT) {acid_table}")
    with pytest.raises(InvalidOperationError, match="has a column __acid_writer"):
        acid_session.sql(f"ALTER TABLE {db}.u ADD COLUMNS (`__acid_writer` INT)")
    assert acid_session.table(f"{db}.u").columns == ["id"]


def test_a_reader_keeps_its_snapshot(acid_session, flat, spark):
    before = acid_session.table(flat)
    with acid(spark) as other:
        other.delete(flat, "id > 0")
    assert before.count() == 4
    assert acid_session.table(flat).count() == 0


def test_reads_in_a_snapshot_block_agree(acid_session, flat, spark):
    with acid(spark.newSession()) as other, acid_session.snapshot():
        first = acid_session.table(flat).count()
        other.insert(flat, spark.sql("SELECT 5 id, 'e' name"))
        assert (first, acid_session.table(flat).count()) == (4, 4)
    assert acid_session.table(flat).count() == 5


def test_a_transaction_sees_its_own_statements_and_nobody_else_does(acid_session, flat, spark):
    with acid(spark.newSession()) as other, acid_session.transaction():
        acid_session.insert(flat, spark.sql("SELECT 5 id, 'e' name"))
        acid_session.update(flat, {"name": "'E'"}, "id = 5")
        acid_session.delete(flat, "id = 1")
        assert rows(acid_session, flat) == [(2, "b"), (3, "c"), (4, "d"), (5, "E")]
        assert other.table(flat).count() == 4
    assert rows(acid_session, flat) == [(2, "b"), (3, "c"), (4, "d"), (5, "E")]


def test_of_two_writers_the_first_committer_wins(acid_session, flat, spark):
    with acid(spark.newSession()) as other:
        with pytest.raises(TxnAbortedError) as lost, acid_session.transaction():
            assert acid_session.table(flat).count() == 4
            other.update(flat, {"name": "'other'"}, "id = 1")
            acid_session.update(flat, {"name": "'mine'"}, "id = 1")
        assert "transaction" in str(lost.value).lower()
    assert rows(acid_session, flat)[0] == (1, "other")
    acid_session.update(flat, {"name": "'again'"}, "id = 1")
    assert rows(acid_session, flat)[0] == (1, "again")


def test_a_failure_in_the_middle_leaves_nothing_visible(acid_session, flat, lakehouse):
    with pytest.raises(Exception, match="boom"):
        acid_session.sql(f"UPDATE {flat} SET name = CASE WHEN id = 3 THEN raise_error('boom') ELSE 'x' END")
    assert rows(acid_session, flat) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    directory = lakehouse.warehouse / f"{flat.split('.')[0]}.db" / "flat"
    assert [child.name for child in directory.iterdir()] == ["delta_0000001_0000001_0000"]


@pytest.mark.parametrize("kind", ["'transactional'='true'", "'transactional'='true', 'transactional_properties'='insert_only'"])
@pytest.mark.parametrize("verb", ["INTO", "OVERWRITE TABLE"])
def test_nothing_gets_its_name_after_the_transaction_was_lost(acid_session, db, lakehouse, monkeypatch, kind, verb):
    """A driver that was stopped for longer than the time-out: the metastore may have forgotten the transaction by then."""
    name, publish, client = f"{db}.t", calls.CALLS["publish"].answer, acid_session.client
    acid_session.sql(f"CREATE TABLE {name} (id INT) STORED AS ORC TBLPROPERTIES ({kind})")

    def lost(call):
        client.abort_txns(client.types.AbortTxnsRequest([call.body.number("txn")]))
        return publish(call)

    monkeypatch.setitem(calls.CALLS, "publish", calls.Method(lost, is_work=True))
    with pytest.raises((TxnAbortedError, LostError)):
        acid_session.sql(f"INSERT {verb} {name} VALUES (1)")

    directory = lakehouse.warehouse / f"{db}.db" / "t"
    assert [child.name for child in directory.iterdir() if not child.name.startswith((".", "_"))] == []


def test_a_transaction_that_was_aborted_cannot_commit(acid_session, flat, spark):
    with pytest.raises((TxnAbortedError, LostError)), acid_session.transaction():
        acid_session.insert(flat, spark.sql("SELECT 5 id, 'e' name"))
        acid_session.sql(f"CALL system.abort_transactions(array({max(open_txns(acid_session))}))")
    assert acid_session.table(flat).count() == 4


@pytest.mark.parametrize("properties", [
    pytest.param("'transactional'='true'", marks=pytest.mark.slow),  # beside tests/acceptance/spark_catalog/test_blocks.py
    "'transactional'='true', 'transactional_properties'='insert_only'"])
def test_what_an_own_overwrite_would_hide_is_refused(acid_session, db, properties):
    """A base hides all deltas of its write id, and a transaction has one write id for a table."""
    name, sql = f"{db}.t", acid_session.sql
    sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (p INT) STORED AS ORC TBLPROPERTIES ({properties})")
    sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    with acid_session.transaction():
        sql(f"INSERT INTO {name} VALUES (7, 1), (8, 2)")
        sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p=1) SELECT 10")
        sql(f"INSERT INTO {name} VALUES (11, 2)")
        later = [f"INSERT INTO {name} VALUES (12, 1), (13, 2)"]
        if "insert_only" not in properties:
            later += [f"DELETE FROM {name} WHERE id = 10", f"UPDATE {name} SET id = 14 WHERE id IN (2, 10)"]
        for statement in later:
            with pytest.raises(InvalidOperationError, match="has overwritten .*p=1 already"):
                sql(statement)
        with pytest.raises(InvalidOperationError, match="it can be done once"):
            sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p=1) SELECT 15")
        assert rows(acid_session, name) == [(10, 1), (11, 2), (2, 2), (8, 2)]
    assert rows(acid_session, name) == [(10, 1), (11, 2), (2, 2), (8, 2)]


def test_events_of_one_known_partition_are_in_order(acid_session, db):
    """Spark leaves a column that it knows out of an order; the files that hold most rows are read first, which are the last here."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (p STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for count in (1, 40, 4000):
        acid_session.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION(1) */ id, 'a' FROM range({count})")
    for statement in (f"UPDATE {name} SET id = id + 1 WHERE p = 'a'", f"DELETE FROM {name} WHERE p = 'a' AND id > 0"):
        acid_session.sql(statement)
        assert [one for one in check_table(acid_session.client, Files(), table_name(db, "t")) if not one.finding.is_unneeded] == []


def test_merge_refuses_two_source_rows_for_one_target_row(acid_session, flat):
    with pytest.raises(PySparkException, match="MERGE_CARDINALITY_VIOLATION"):
        acid_session.sql(f"MERGE INTO {flat} t USING (SELECT explode(array(1, 1)) AS id) s ON t.id = s.id "
                         "WHEN MATCHED THEN UPDATE SET name = 'x'")
    assert rows(acid_session, flat)[0] == (1, "a")


def test_delete_without_a_condition_empties_the_table_as_truncate_does(acid_session, flat):
    """Spark's own: a base over what was there, where row after row would be deleted."""
    assert acid_session.delete(flat) == 4
    place = Path(acid_session.client.get_table(*flat.split(".")).sd.location.removeprefix("file:").replace("///", "/"))
    assert sorted(path.name for path in place.glob("[bd]*_*")) == ["base_0000002", "delta_0000001_0000001_0000"]
    assert acid_session.sql(f"INSERT INTO {flat} VALUES (1, 'a')").first()["rows"] == 1
    assert acid_session.sql(f"DELETE FROM {flat}").first()["rows"] == 1


def test_a_merge_takes_values_that_another_tables_snapshot_gives(acid_session, flat, parted):
    acid_session.sql(f"MERGE INTO {parted} t USING (SELECT * FROM {flat} WHERE id > 3 UNION ALL SELECT 5, 'e') s ON t.id = s.id "
                     f"WHEN MATCHED THEN UPDATE SET name = (SELECT max(f.name) FROM {flat} f) || s.name "
                     "WHEN NOT MATCHED THEN INSERT (id, name, day) VALUES (s.id, s.name, 'new')")
    assert rows(acid_session, parted) == [(1, "a", "x/y"), (2, "b", "ä b%"), (3, "c", None), (4, "dd", "x/y"), (5, "e", "new")]


def test_subqueries_read_the_same_snapshot(acid_session, flat, parted):
    assert acid_session.sql(f"DELETE FROM {flat} WHERE id IN (SELECT p.id FROM {parted} p WHERE p.day = 'x/y')").first()[0] == 2
    assert rows(acid_session, flat) == [(2, "b"), (3, "c")]
    joined = acid_session.sql(f"WITH f AS (SELECT * FROM {flat}) SELECT f.name, p.day FROM f JOIN {parted} p ON f.id = p.id "
                              "ORDER BY 1").collect()
    assert [tuple(row) for row in joined] == [("b", "ä b%"), ("c", None)]


def test_as_of_a_write_id(acid_session, flat):
    acid_session.update(flat, {"name": "'new'"})
    assert acid_session.table(flat, as_of_write_id=1).where("name = 'new'").count() == 0
    assert acid_session.table(flat, as_of_write_id=2).where("name = 'new'").count() == 4
    with pytest.raises(InvalidOperationError, match="up to 2"):
        acid_session.table(flat, as_of_write_id=3)


@pytest.mark.parametrize(("statement", "reason"), [
    ("UPDATE {parted} SET day = 'z'", "Partition column day"),
    ("CREATE TABLE x (id INT) STORED AS PARQUET TBLPROPERTIES ('transactional'='true')", "such as ORC"),
])
def test_what_cannot_be_done_is_refused_with_the_reason(acid_session, flat, parted, statement, reason):
    with pytest.raises(MetastoreError, match=reason):
        acid_session.sql(statement.format(flat=flat, parted=parted))
    assert acid_session.table(flat).count() == 4


@pytest.mark.parametrize(("statement", "condition"), [
    ("UPDATE {flat} SET nothing = 1", "UNRESOLVED_COLUMN"), ("UPDATE {flat} SET name =", "PARSE_SYNTAX_ERROR"),
    ("INSERT INTO {flat} PARTITION (day='x') VALUES (1, 'x')", "NON_PARTITION_COLUMN"),
    ("INSERT INTO {parted} PARTITION (day='z') BY NAME SELECT 1 AS id, 'y' AS Day", "STATIC_PARTITION"),
    ("INSERT OVERWRITE {parted} PARTITION (day='z') (id, day) VALUES (1, 'y')", "STATIC_PARTITION"),
    ("MERGE INTO {flat} t USING {parted} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1", "UNRESOLVED_COLUMN")])
def test_what_is_wrong_to_spark_is_said_by_spark(acid_session, flat, parted, statement, condition):
    with pytest.raises(AnalysisException) as refused:
        acid_session.sql(statement.format(flat=flat, parted=parted))
    assert (refused.value.getCondition() or "").startswith(condition)
    assert acid_session.table(flat).count() == 4


def test_a_query_that_is_none_to_spark_is_refused_whatever_another_parser_makes_of_it(acid_session, flat):
    with pytest.raises(ParseException):
        acid_session.sql(f"SELECT * FROM {flat} FETCH FIRST 3 ROWS ONLY")


@pytest.mark.parametrize("properties", ["'transactional'='true'", pytest.param(
    "'transactional'='true', 'transactional_properties'='insert_only'", marks=pytest.mark.slow)])
def test_rows_of_another_partition_are_not_stored_under_the_given_one(acid_session, spark, db, properties):
    name = f"{db}.days"
    acid_session.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (day DATE, n INT) STORED AS ORC "
                     f"TBLPROPERTIES ({properties})")
    given = spark.sql("SELECT id, IF(id < 4, '2024-05-01', IF(id < 6, '2024-05-02', 'never')) AS Day, 1 AS n "
                      "FROM VALUES (1), (2), (3), (4), (5), (6) AS v (id)")
    partition = {"day": "2024-05-01", "n": "1"}

    with pytest.raises(InvalidOperationError, match=r"only PARTITION \((day = 2024-05-01|n = 1)\) is overwritten"):
        acid_session.overwrite(name, given, partition=partition)
    with acid_session.transaction(), pytest.raises(InvalidOperationError, match=r"only PARTITION \(n = 2\) is overwritten"):
        acid_session.overwrite(name, given.where("id < 6").withColumn("Day", F.expr("DATE(Day)")), partition={"n": 2})
    assert rows(acid_session, name) == []

    assert acid_session.overwrite(name, given.where("id < 4"), partition=partition) == 3
    assert acid_session.overwrite(name, given.where("id < 3").drop("day"), partition=partition) == 2
    assert acid_session.table(name).where("day = DATE '2024-05-01' AND n = 1").count() == 2
    assert acid_session.overwrite(name, given.where("id > 9"), partition=partition) == 0
    assert rows(acid_session, name) == []


def test_a_table_that_is_called_by_a_word_of_sql(acid_session, db):
    acid_session.sql(f"CREATE TABLE {db}.full (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    acid_session.sql(f"INSERT INTO {db}.full VALUES (1), (2)")
    assert acid_session.sql(f"DELETE FROM {db}.full WHERE id = 1").first()["rows"] == 1
    assert [row.id for row in acid_session.sql(f"SELECT * FROM {db}.full").collect()] == [2]


def test_names_that_do_not_exist(acid_session, db):
    for where in (None, "id = 1"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            acid_session.delete(f"{db}.nothing", where)
    with pytest.raises(NoSuchObjectError, match=f"{db}.nothing"):
        acid_session.table(f"{db}.nothing")


def test_other_statements_go_to_spark_unchanged(acid_session, db, spark):
    acid_session.sql(f"CREATE TABLE {db}.plain (id INT) USING parquet")
    spark.sql(f"INSERT INTO {db}.plain VALUES (1)")
    assert acid_session.sql(f"SELECT * FROM {db}.plain").count() == 1
    with pytest.raises(AnalysisException, match="does not support DELETE"):
        acid_session.sql(f"DELETE FROM {db}.plain")


def test_reads_end_their_transactions(acid_session, flat):
    before = open_txns(acid_session)
    with acid_session.snapshot():
        frame = acid_session.table(flat)
        [mine] = open_txns(acid_session) - before
        assert [(str(lock.type), lock.tablename) for lock in locks_of(acid_session, mine)] == [
            (str(acid_session.client.types.LockType.SHARED_READ), "flat")]
    assert open_txns(acid_session) <= before
    assert frame.where("id = 1").count() == 1
    acid_session.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert open_txns(acid_session) <= before


def test_show_and_compact(acid_session, flat, parted):
    answer = acid_session.sql(f"CALL system.compact('{parted}', partition => 'day=x%2Fy')").first()
    again = acid_session.sql(f"CALL system.compact('{parted}', partition => 'day=x%2Fy')").first()
    assert (answer["accepted"], again["accepted"], again["compaction_id"]) == (True, False, answer["compaction_id"])
    shown = acid_session.sql("CALL system.show_compactions()").where(F.col("compaction_id") == answer["compaction_id"]).first()
    assert (shown["partition"], shown["type"]) == ("day=x%2Fy", "MAJOR")
    with acid_session.snapshot():
        acid_session.table(flat)
        locks = acid_session.sql(f"CALL system.show_locks(txn_id => {max(open_txns(acid_session))})")
        assert locks.where("`table` = 'flat' AND type = 'SHARED_READ'").count() == 1
        assert acid_session.sql("CALL system.show_transactions(state => 'open')").count() == len(open_txns(acid_session))


def _write_directory(session, name, directory, frame, file_format="orc"):
    """Put one directory into the table in an open transaction, as another engine does, and return the transaction."""
    db, table = name.split(".")
    types = session.client.types
    [txn_id] = session.client.open_txns(types.OpenTxnRequest(num_txns=1, user="other", hostname="engine")).txn_ids
    session.client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(dbName=db, tableName=table, txnIds=[txn_id]))
    place = Path(session.client.get_table(db, table).sd.location.removeprefix("file:"))
    frame.write.format(file_format).save(f"{place}/.other")  # to its final name Spark would not write
    (place / ".other").rename(place / directory)
    return txn_id


def test_insert_only_tables_are_read_by_directory(acid_session, db, spark):
    name = f"{db}.only"
    acid_session.sql(f"CREATE TABLE {name} (id INT) STORED AS ORC TBLPROPERTIES "
                     "('transactional'='true', 'transactional_properties'='insert_only')")
    types = acid_session.client.types
    for write_id, ends in ((1, "commit"), (2, "abort"), (3, "open")):
        txn_id = _write_directory(acid_session, name, f"delta_{write_id:07d}_{write_id:07d}_0000",
                                  spark.range(write_id, write_id + 1).select(F.col("id").cast("int")))
        if ends == "commit":
            acid_session.client.commit_txn(types.CommitTxnRequest(txnid=txn_id))
        if ends == "abort":
            acid_session.client.abort_txn(types.AbortTxnRequest(txnid=txn_id))
    assert rows(acid_session, name) == [(1,)]
    acid_session.client.abort_txn(types.AbortTxnRequest(txnid=txn_id))
    with pytest.raises(InvalidOperationError, match="needs a full ACID table"):
        acid_session.delete(name)


def test_rows_that_can_have_no_ids_are_read_and_not_changed(acid_session, flat, spark):
    original = spark.createDataFrame([(7, "raw")], "id INT, name STRING")
    acid_session.client.commit_txn(acid_session.client.types.CommitTxnRequest(txnid=_write_directory(
        acid_session, flat, "old_part", original)))
    assert rows(acid_session, flat)[-1] == (7, "raw")
    with pytest.raises(InvalidOperationError, match="no bucket number in its name"):
        acid_session.delete(flat, "id = 7")


def test_create_table_as_select_and_its_refusals(acid_session, db):
    made = acid_session.sql(f"CREATE TABLE {db}.ctas STORED AS ORC TBLPROPERTIES ('transactional'='true') "
                            "AS SELECT id, id * 2 AS twice FROM range(5)")
    assert made.first()[0] == 5
    assert acid_session.sql(f"SELECT sum(twice) FROM {db}.ctas").first()[0] == 20
    again = f"CREATE TABLE IF NOT EXISTS {db}.ctas (id BIGINT) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    assert acid_session.sql(again).collect() == []
    with pytest.raises(InvalidOperationError, match="declares no columns"):
        acid_session.sql(f"CREATE TABLE {db}.empty STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    with pytest.raises(InvalidInputError, match="the kinds are"):
        acid_session.sql(f"CALL system.compact('{db}.ctas', type => 'medium')")
