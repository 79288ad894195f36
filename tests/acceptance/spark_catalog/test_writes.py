"""What statements write through the catalog: beside a model, read by the catalog and without Spark, and looked through."""

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from metastore.client import DomainClient, scan
from metastore.files import Files
from metastore.ids import table_name
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.spark.check.table_check import check_table
from tests.support.nanoseconds import insert_nanoseconds

pytestmark = pytest.mark.spark

PLACED = "(n BIGINT, c STRUCT<a: INT, b: ARRAY<STRING>>) PARTITIONED BY (k STRING) CLUSTERED BY (n) INTO 3 BUCKETS"
ODD = "a b/ü=\"'1"


def created(session, name, columns):
    session.sql(f"CREATE TABLE {name} {columns} STORED AS ORC TBLPROPERTIES ('transactional'='true', 'bucketing_version'='2')")
    return name


def rows(frame):
    """(n, c.a, k) of each row."""
    return sorted(map(tuple, frame.selectExpr("n", "c.a", "k").collect()), key=repr)


def arrow_rows(lakehouse, name):
    """Return (n, c.a, k) of each row, read without Spark."""
    return sorted(((row["n"], row["c"] and row["c"]["a"], row["k"]) for row in scan(name, uri=lakehouse.uri).to_arrow().to_pylist()), key=repr)


def findings(lakehouse, name):
    with DomainClient(lakehouse.uri) as client:
        return [violation for violation in check_table(client, Files(), table_name(*name.split("."))) if not violation.finding.is_unneeded]


def test_statements_equal_a_model(catalog, db, lakehouse) -> None:
    name, model = created(catalog, f"{db}.t", PLACED), {}

    def run(statement, change):
        nonlocal model
        catalog.sql(statement.format(t=name))
        model = change(dict(model))
        assert rows(catalog.table(name)) == sorted(((n, *values) for n, values in model.items()), key=repr), statement

    odd = ODD.replace("'", "\\'")
    run(f"INSERT INTO {{t}} SELECT id, named_struct('a', id, 'b', array('x')), CASE WHEN id % 3 = 0 THEN '{odd}' WHEN id % 3 = 1 THEN 'q' END "
        "FROM range(12)", lambda _: {n: (n, (ODD, "q", None)[n % 3]) for n in range(12)})
    run("UPDATE {t} SET c.a = c.a + 100 WHERE n % 4 = 1", lambda now: {n: ((a + 100) if n % 4 == 1 else a, k) for n, (a, k) in now.items()})
    run("DELETE FROM {t} WHERE n % 5 = 2", lambda now: {n: values for n, values in now.items() if n % 5 != 2})
    run("""MERGE INTO {t} t USING (SELECT id AS n, 'q' AS k FROM range(6, 15)) s ON t.n = s.n
           WHEN MATCHED AND t.n = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET c = named_struct('a', 0, 'b', NULL)
           WHEN NOT MATCHED THEN INSERT (n, c, k) VALUES (s.n, NULL, s.k)
           WHEN NOT MATCHED BY SOURCE AND t.n = 1 THEN UPDATE SET c.a = -1""",
        lambda now: {n: (0, k) if n > 6 else (-1, k) if n == 1 else (a, k) for n, (a, k) in now.items() if n != 6}
        | {n: (None, "q") for n in range(6, 15) if n not in now})

    assert arrow_rows(lakehouse, name) == rows(catalog.table(name))
    assert findings(lakehouse, name) == []


def test_an_overwrite_replaces_what_hive_replaces(catalog, db, lakehouse) -> None:
    name = created(catalog, f"{db}.t", "(n BIGINT) PARTITIONED BY (k INT, d DATE)")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 1, DATE'2024-01-05'), (2, 1, NULL), (3, 2, DATE'2024-01-05')")

    def left(statement):
        catalog.sql(statement.format(t=name))
        return sorted((n, k, d and str(d)) for n, k, d in catalog.table(name).collect())

    assert left("INSERT OVERWRITE {t} PARTITION (k = 1, d = '2024-01-05') SELECT 10") == [
        (2, 1, None), (3, 2, "2024-01-05"), (10, 1, "2024-01-05")]
    assert left("INSERT OVERWRITE {t} PARTITION (k = 1, d) SELECT 11, CAST(NULL AS DATE)") == [
        (3, 2, "2024-01-05"), (10, 1, "2024-01-05"), (11, 1, None)]
    assert left("INSERT OVERWRITE {t} SELECT 12, 2, DATE'2024-01-05'") == [(10, 1, "2024-01-05"), (11, 1, None), (12, 2, "2024-01-05")]
    assert left("INSERT OVERWRITE {t} PARTITION (k = 1, d = '2024-01-05') SELECT 13 WHERE false") == [
        (11, 1, None), (12, 2, "2024-01-05")]
    with pytest.raises(Exception, match=r"are of k = 5, and only PARTITION \(k = 1\) is overwritten"):
        catalog.sql("SELECT 14L n, 5 k, DATE'2024-01-05' d").writeTo(name).overwrite(F.col("k") == 1)
    assert left("TRUNCATE TABLE {t}") == []
    assert findings(lakehouse, name) == []


def test_columns_by_which_rows_are_placed_are_not_assigned(catalog, db, lakehouse) -> None:
    name = created(catalog, f"{db}.t", PLACED)
    catalog.sql(f"INSERT INTO {name} SELECT id, NULL, 'q' FROM range(6)")

    with pytest.raises(Exception, match=f"Bucketing column n of {name} cannot be updated: delete the row and insert the new one"):
        catalog.sql(f"UPDATE {name} SET n = n + 1")
    with pytest.raises(Exception, match=f"Partition column k of {name} cannot be updated: delete the row and insert it into"):
        catalog.sql(f"UPDATE {name} SET k = 'other'")
    source = "(SELECT id AS n, named_struct('a', 1, 'b', NULL) AS c, '{k}' AS k FROM range(2)) s"
    catalog.sql(f"MERGE INTO {name} t USING {source.format(k='q')} ON t.n = s.n WHEN MATCHED THEN UPDATE SET *")
    with pytest.raises(Exception, match=f"Partition column k of {name} cannot be updated"):
        catalog.sql(f"MERGE INTO {name} t USING {source.format(k='z')} ON t.n = s.n WHEN MATCHED THEN UPDATE SET *")
    assert arrow_rows(lakehouse, name) == sorted([(n, 1 if n < 2 else None, "q") for n in range(6)], key=repr)


def test_rows_are_added_where_spark_has_begun_no_transaction(catalog, spark, db, lakehouse) -> None:
    """It asks the thread's session for the catalog, and not the frame's; before 4.2 it begins none at all."""
    name = created(catalog, f"{db}.t", "(n BIGINT)")
    active = catalog._jvm.org.apache.spark.sql.classic.SparkSession
    active.setActiveSession(spark._jsparkSession)
    catalog.sql("SELECT 1L n").writeTo(name).append()
    active.setActiveSession(spark._jsparkSession)
    catalog.sql("SELECT 2L n").writeTo(name).overwritePartitions()

    assert scan(name, uri=lakehouse.uri).to_arrow().to_pylist() == [{"n": 2}]


def test_a_statement_is_one_transaction_over_all_that_it_reads_and_writes(catalog, db, monkeypatch, open_transactions) -> None:
    """Also with subqueries of the table that is written. What is only explained leaves nothing."""
    name, other = (created(catalog, f"{db}.{one}", "(n BIGINT)") for one in ("t", "other"))
    began, locked = [], []
    begin, lock = (planner_server.CALLS[one].answer for one in ("begin", "lock"))
    monkeypatch.setitem(planner_server.CALLS, "begin", Method(lambda call: began.append(call.body.text("kind")) or begin(call)))
    monkeypatch.setitem(planner_server.CALLS, "lock", Method(
        lambda call: locked.extend(one.text("kind") for one in call.body.bodies("writes")) or lock(call)))
    for statement, kinds in (
        (f"INSERT INTO {other} SELECT id FROM range(6)", ["INSERT"]),
        (f"INSERT INTO {name} SELECT n FROM {other}", ["INSERT"]),
        (f"DELETE FROM {name} WHERE n IN (SELECT max(n) FROM {name}) OR n = (SELECT min(n) FROM {other})", ["DELETE"]),
        (f"MERGE INTO {name} t USING {other} s ON t.n = s.n WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT *",
         ["DELETE", "MERGE_INSERT", "UPDATE"]),
        (f"MERGE INTO {name} t USING {other} s ON t.n = s.n WHEN NOT MATCHED THEN INSERT *",
         ["MERGE_INSERT"]),
        (f"UPDATE {name} SET n = n + 10 WHERE EXISTS (SELECT 1 FROM {other} s WHERE s.n = {name}.n + 2) OR n > (SELECT max(n) FROM {name})",
         ["UPDATE"]),
        (f"INSERT OVERWRITE {name} SELECT n FROM {name} WHERE n > 3", ["INSERT_OVERWRITE"]),
    ):
        began.clear()
        locked.clear()
        catalog.sql(statement)
        assert (began, sorted(locked)) == (["DEFAULT"], kinds), statement
        catalog.sql(f"EXPLAIN {statement}").collect()
        assert open_transactions() == [], statement
    assert sorted(row.n for row in catalog.table(name).collect()) == [4, 5, 10, 11, 12, 13]


def test_nanoseconds_are_not_cut(catalog, acid_session, db) -> None:
    name = created(acid_session, f"{db}.fine", "(id INT, at TIMESTAMP, note STRING)")
    catalog.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP'2020-01-01 00:00:00.123456', 'x')")
    insert_nanoseconds(acid_session, name)

    for statement in (f"UPDATE {name} SET note = 'z' WHERE id = 2",
                      f"MERGE INTO {name} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'z'"):
        with pytest.raises(Exception, match=r"bucket_00000 holds timestamps with nanoseconds"):
            catalog.sql(statement)
    catalog.sql(f"UPDATE {name} SET at = NULL WHERE id = 3")
    catalog.sql(f"DELETE FROM {name} WHERE id = 2")
    assert catalog.sql(f"SELECT id, at IS NULL, note FROM {name} ORDER BY id").collect() == [(1, False, "x"), (3, True, "y")]


def test_rows_that_can_have_no_ids_are_read_and_not_changed(catalog, db, client) -> None:
    """Their file has a name of no bucket, so no delete event could name them."""
    name = created(catalog, f"{db}.t", "(n BIGINT, c STRUCT<a: INT>)")
    catalog.sql(f"INSERT INTO {name} VALUES (1, NULL)")
    place = Path(client.get_table(db, "t").sd.location.removeprefix("file:"))
    catalog.sql("SELECT 7L AS n, named_struct('a', 1) AS c").write.orc(f"{place}/.loaded")  # to another name Spark would not write
    (place / ".loaded").rename(place / "loaded")

    for statement in (f"DELETE FROM {name} WHERE n = 7", f"UPDATE {name} SET c = NULL WHERE n >= 7",
                      f"MERGE INTO {name} t USING (SELECT 7L AS n) s ON t.n = s.n WHEN MATCHED THEN DELETE"):
        with pytest.raises(Exception, match="no bucket number in its name"):
            catalog.sql(statement)
    catalog.sql(f"UPDATE {name} SET n = 2 WHERE n = 1")

    read = catalog.table(name).select("n", "c.a", "ROW__ID.rowid").collect()
    assert sorted(map(tuple, read)) == [(2, None, 0), (7, 1, None)]
