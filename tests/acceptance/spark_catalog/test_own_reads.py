"""Frames of ``acid(spark)`` keep their snapshot in the session's catalog, and Spark's own statements see the session's own reads."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from metastore.client import MetastoreClient
from metastore.errors import InvalidOperationError
from tests.support.thrift_server import until

pytestmark = pytest.mark.spark

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
REFUSAL = "is locked by a DataFrame of this session"


def rows(frame):
    return sorted(map(tuple, frame.collect()))


def test_a_statement_that_its_own_session_would_keep_waiting_is_refused_until_the_frame_is_gone(catalog, session, days, open_transactions) -> None:
    overwrite, drop = f"INSERT OVERWRITE {days} PARTITION (day = 1) SELECT 10", f"DROP TABLE {days}"
    held = session.table(days)
    for statement in (overwrite, drop):
        with pytest.raises(PySparkException, match=f"{days} {REFUSAL}"):
            catalog.sql(statement)
    catalog.sql(f"UPDATE {days} SET id = 3 WHERE day = 2")  # it shares the table
    assert rows(held) == [(1, 1), (2, 2)]

    del held
    catalog.sql(overwrite)
    assert rows(catalog.table(days)) == [(3, 2), (10, 1)]
    catalog.sql(drop)
    assert open_transactions() == []


@pytest.mark.slow  # beside the statements of Spark's own
def test_a_cache_and_a_view_keep_every_statement_out_that_needs_the_table(catalog, session, days, db) -> None:
    statements = [f"TRUNCATE TABLE {days}", f"ALTER TABLE {days} DROP PARTITION (day = 1)",
                  f"ALTER TABLE {days} ADD COLUMNS (more INT)", f"ALTER TABLE {days} RENAME TO {db}.other"]
    cached = catalog.table(days).cache()
    assert cached.count() == 2
    with pytest.raises(PySparkException, match=f"{days} {REFUSAL}"):
        catalog.sql(statements[0])
    cached.unpersist()
    del cached
    gc.collect()
    catalog.sql(f"INSERT OVERWRITE {days} PARTITION (day = 2) SELECT 3")

    session.table(days).createOrReplaceTempView("held")
    for statement in statements:
        with pytest.raises(PySparkException, match=f"{days} {REFUSAL}"):
            catalog.sql(statement)
    with pytest.raises(InvalidOperationError, match=f"{days} {REFUSAL}"):
        session.sql(f"INSERT OVERWRITE TABLE {days} PARTITION (day = 1) SELECT 10")
    with session.transaction():
        with pytest.raises(InvalidOperationError, match=f"{days} {REFUSAL}"):
            session.sql(f"INSERT OVERWRITE TABLE {days} PARTITION (day = 1) SELECT 10")
        with pytest.raises(PySparkException, match=f"{days} {REFUSAL}"):
            catalog.sql(f"INSERT OVERWRITE {days} PARTITION (day = 1) SELECT 10")
        catalog.sql(f"INSERT INTO {days} VALUES (4, 4)")
    catalog.catalog.dropTempView("held")
    assert rows(catalog.table(days)) == [(1, 1), (3, 2), (4, 4)]
    for statement in statements:
        catalog.sql(statement)


def test_what_is_only_planned_keeps_nobody_out_and_is_planned_anew(catalog, days, open_transactions) -> None:
    """Each of one snapshot: that of the run, whatever was planned in another."""
    joined = catalog.sql(f"SELECT a.id, b.id, (SELECT count(*) FROM {days}) FROM {days} a JOIN {days} b USING (day)")
    counted, changed = (catalog.sql(f"SELECT count(*), max(id) AS {name} FROM {days}") for name in ("most", "other"))
    for frame in (joined, counted, changed):
        frame._jdf.queryExecution().executedPlan()  # as explain() does
    catalog.sql(f"INSERT OVERWRITE {days} PARTITION (day = 1) VALUES (10), (11)")
    until(lambda: open_transactions() == [])

    assert rows(joined) == [(2, 2, 3), (10, 10, 3), (10, 11, 3), (11, 10, 3), (11, 11, 3)]
    assert rows(counted) == [(3, 11)]
    catalog.sql(f"DELETE FROM {days} WHERE id = 11")
    for _ in range(2):  # footers count what is deleted, too
        with pytest.raises(PySparkException, match=f"{days} has changed .* DataFrame anew"):
            changed.collect()
    assert open_transactions() == []


@pytest.mark.slow  # beside the refusal of what does not run
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
    """Frames of one table read in one transaction, and each plan that they are a part of joins it."""
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
    assert len(open_transactions()) == len(frames) + 1  # those of the block share one


@pytest.mark.slow  # as of frames whose snapshot Python holds, in tests/acceptance/spark_session/test_leases.py
def test_what_is_made_of_a_frame_holds_its_snapshot(catalog, session, days, db, open_transactions) -> None:
    only = f"{db}.only"
    session.sql(f"CREATE TABLE {only} (id BIGINT) STORED AS PARQUET TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    session.sql(f"INSERT INTO {only} VALUES (1), (2)")

    def is_open() -> int:
        for _ in range(4):  # a scan that is garbage refers to its transaction until the next look
            session._txns._kept._look()
        return len(open_transactions())

    made = {(form, name): make(catalog, session.table(name)) for name in (days, only) for form, make in FORMS.items()}
    assert is_open() == len(made)
    assert {key: rows.count() for key, rows in made.items()} == dict.fromkeys(made, 2)
    assert is_open() == len(made)

    each = [session.table(name).toLocalIterator() for name in (days, only)]
    assert all(next(one) for one in each)
    for name in (days, only):
        made["persist", name].unpersist()
    catalog.catalog.dropTempView("held_by_a_view")
    made.clear()
    until(lambda: is_open() == len(each))
    assert [len(list(one)) for one in each] == [1, 1]
    each.clear()
    until(lambda: is_open() == 0)


def a_view(catalog, frame):
    """The last of these stays: a view takes the name of the one before."""
    frame.createOrReplaceTempView("held_by_a_view")
    return catalog.table("held_by_a_view")


FORMS = {
    "join": lambda catalog, frame: catalog.range(10).join(frame, "id"),
    "union": lambda catalog, frame: catalog.range(0).union(frame.select("id")),
    "persist": lambda catalog, frame: catalog.range(0).union(frame.select("id")).persist(),
    "view": a_view,
    "rdd": lambda _, frame: frame.rdd,
    "rdd behind a shuffle": lambda _, frame: frame.repartition(2).rdd.map(lambda row: row),
    "broadcast": lambda catalog, frame: catalog.range(10).join(frame.hint("broadcast"), "id"),
}
