"""Reads of a session beside its own statements: those that run are waited for, and nothing else."""

import os
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest
from pyspark.sql import functions as F

from metastore.client import MetastoreClient
from tests.support.thrift_server import until

pytestmark = pytest.mark.spark

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
AT_ONCE = 10
"""Seconds. Who waits for a lock in vain waits for 300."""


def rows(frame):
    return sorted(map(tuple, frame.collect()))


def test_nothing_that_could_be_read_again_keeps_a_statement_waiting(catalog, session, days, db, open_transactions) -> None:
    """Frames, a view, a cache, an iterator, an RDD and a plan are there, and none runs."""
    frame, planned, cached = session.table(days), catalog.table(days), catalog.table(days).cache()
    frame.createOrReplaceTempView("held")
    planned._jdf.queryExecution().executedPlan()  # as explain() does
    assert cached.count() == 2
    iterator, rdd = session.table(days).toLocalIterator(), catalog.table(days).rdd
    assert next(iterator).id
    assert rdd.count() == 2
    began = monotonic()
    for statement in (f"INSERT OVERWRITE {days} PARTITION (day = 1) SELECT 10", f"TRUNCATE TABLE {days}", f"ALTER TABLE {days} DROP PARTITION (day = 1)",
                      f"ALTER TABLE {days} ADD COLUMNS (more INT)", f"ALTER TABLE {days} RENAME TO {db}.other", f"DROP TABLE {db}.other"):
        catalog.sql(statement)
    assert monotonic() - began < AT_ONCE
    assert open_transactions() == []
    cached.unpersist()
    catalog.catalog.dropTempView("held")


def test_a_statement_may_replace_what_it_reads_by_a_frame_or_a_cache(catalog, session, days) -> None:
    """In its own transaction, which has the table for itself."""
    frame, cached = session.table(days), catalog.table(days).cache()
    catalog.sql(f"INSERT INTO {days} VALUES (3, 1)")
    frame.createOrReplaceTempView("held")
    began = monotonic()
    catalog.sql(f"INSERT OVERWRITE {days} PARTITION (day = 1) SELECT id + 10 FROM held")
    catalog.catalog.dropTempView("held")
    assert rows(catalog.table(days)) == [(2, 2), (11, 1), (12, 1)]

    cached.createOrReplaceTempView("filled_by_the_statement")
    catalog.sql(f"INSERT OVERWRITE {days} PARTITION (day = 2) SELECT id FROM filled_by_the_statement")
    catalog.catalog.dropTempView("filled_by_the_statement")
    assert monotonic() - began < AT_ONCE
    assert rows(catalog.table(days).where("day = 2")) == [(2, 2), (11, 2), (12, 2)]
    cached.unpersist()


def test_queries_of_one_frame_have_each_a_snapshot_of_its_own(catalog, days, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.other (id INT) {ACID}")
    frame = catalog.table(days)
    joined = frame.join(catalog.table(f"{db}.other"), "id")
    joined._jdf.queryExecution().normalized()  # Spark has begun with it
    assert frame.where("id > 0").count() == 2
    for name, row in {days: "(5, 5)", f"{db}.other": "(5)"}.items():
        catalog.sql(f"INSERT INTO {name} VALUES {row}")
    assert rows(joined) == [(5, 5)]


def test_what_was_planned_is_one_snapshot_whenever_it_runs(catalog, days, open_transactions) -> None:
    """Spark has asked for the sizes of some of its tables, for EXPLAIN."""
    joined = catalog.sql(f"SELECT a.id, b.id, (SELECT count(*) FROM {days}) FROM {days} a JOIN {days} b USING (day)")
    counted = catalog.sql(f"SELECT count(*), max(id) FROM {days}")
    for frame in (joined, counted):
        frame._jdf.queryExecution().executedPlan()
    catalog.sql(f"INSERT OVERWRITE {days} PARTITION (day = 1) VALUES (10), (11)")
    until(lambda: open_transactions() == [])

    assert rows(joined) == [(1, 1, 2), (2, 2, 2)]
    assert rows(counted) == [(2, 2)]
    assert rows(catalog.table(days)) == [(2, 2), (10, 1), (11, 1)]
    assert open_transactions() == []


def test_a_query_that_runs_is_waited_for(catalog, days, lakehouse, tmp_path) -> None:
    """Its task reads from a pipe, whose other end the test opens once the statement waits."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = catalog.table(days).select("id", F.udf(lambda _: pipe.read_text())("id").alias("said")).where("id = 1")
    with ThreadPoolExecutor(2) as threads, MetastoreClient(lakehouse.uri) as client:
        running = threads.submit(read.collect)
        with pipe.open("w") as said:  # the task has opened it: the query holds its lock
            waiting = threads.submit(catalog.sql, f"TRUNCATE TABLE {days}")
            while not is_waiting(client, days):
                assert not waiting.done()
            said.write("done")
        assert running.result()[0]["said"] == "done"
        waiting.result()
    assert rows(catalog.table(days)) == []


def test_who_waits_for_a_table_keeps_no_query_of_others_waiting(catalog, days, db, lakehouse) -> None:
    """Each query of a frame reads in a transaction of its own."""
    for name in ("other", "third"):
        catalog.sql(f"CREATE TABLE {db}.{name} (id INT) {ACID}")
    first, types = catalog.table(days), MetastoreClient.types
    part = types.LockComponent(type=types.LockType.EXCLUSIVE, level=types.LockLevel.TABLE, dbname=db, tablename="other")
    with ThreadPoolExecutor(3) as threads, MetastoreClient(lakehouse.uri) as client:
        held = client.lock(types.LockRequest(component=[part], user="trino", hostname="elsewhere"))
        try:
            waiting = [threads.submit(first.join(catalog.table(f"{db}.other"), "id").collect)]
            until(lambda: is_waiting(client, f"{db}.other"))
            same = threads.submit(first.where, "id = 1").result(timeout=60)  # only analysed
            waiting.append(threads.submit(same.collect))
            between = catalog.table(f"{db}.third").join(catalog.table(days), "id")
            assert threads.submit(between.collect).result(timeout=60) == []
            assert not waiting[0].done()
        finally:
            client.unlock(types.UnlockRequest(held.lockid))
        assert [len(one.result()) for one in waiting] == [0, 1]


def is_waiting(client, name) -> bool:
    """Whether somebody waits for a lock of the table."""
    db, table = name.split(".")
    locks = client.show_locks(client.types.ShowLocksRequest(dbname=db, tablename=table)).locks
    return any(one.state == client.types.LockState.WAITING for one in locks)


def test_frames_stay_what_they_were_wherever_they_are_read(catalog, session, days, db, open_transactions) -> None:
    catalog.sql(f"CREATE TABLE {db}.copy (id INT, day INT) {ACID}")
    catalog.sql(f"CREATE VIEW {db}.seen AS SELECT id FROM {days} WHERE day = 2")
    frames = {"table": session.table(days), "where": session.table(days, where=f"id IN (SELECT id FROM {db}.seen)"),
              "sql": session.sql(f"SELECT t.id, s.id FROM {days} t LEFT JOIN {db}.seen s ON s.id = t.id"),
              "ids": session.table(days, row_id=True).selectExpr("id", "ROW__ID.writeid")}
    with session.snapshot():
        first = session.table(days)
        catalog.sql(f"UPDATE {days} SET id = id + 10")
        second = session.sql(f"SELECT id FROM {db}.seen")
    catalog.sql(f"INSERT INTO {days} VALUES (3, 3)")

    wanted = {"table": [(1, 1), (2, 2)], "where": [(2, 2)], "sql": [(1, None), (2, 2)], "ids": [(1, 1), (2, 1)]}
    assert {name: sorted(map(tuple, frame.collect()), key=str) for name, frame in frames.items()} == wanted
    assert (rows(first), rows(second)) == ([(1, 1), (2, 2)], [(2,)])
    frames["table"].createOrReplaceTempView("before")
    catalog.sql(f"INSERT INTO {db}.copy SELECT * FROM before")  # Spark loads the tables of a statement's transaction anew
    assert rows(catalog.table(f"{db}.copy")) == [(1, 1), (2, 2)]
    now = catalog.table(days)
    assert rows(now.join(frames["table"], "day", "left_anti")) == [(3, 3)]
    catalog.catalog.dropTempView("before")
    assert open_transactions() == []


def test_a_frame_is_the_same_to_spark_as_another_of_its_snapshot(session, days) -> None:
    first, second = session.table(days), session.table(days)
    assert first.sameSemantics(second)
    assert first.join(second, "id").count() == first.count()
