"""A snapshot is kept for as long as anything can read it, whatever was made of its frame, and no longer."""

from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest

from metastore.errors import InvalidOperationError
from metastore.spark import acid
from tests.support.thrift_server import until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def tables(spark) -> Iterator[list[str]]:
    """Tables of each way in which rows are read: with deletes, another format and partitions, and no files at all."""
    db = f"db_{uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {db}")
    with acid(spark) as session:
        made = [*_made(session, spark, db)]
        until(lambda: _open(session, made) == 0)
        yield made
        until(lambda: _open(session, made) == 0)  # the last test's frames are garbage, and were not looked for yet
        session.client.drop_database(db, True, True)


def _made(session, spark, db) -> Iterator[str]:
    for name, kind in {"whole": "STORED AS ORC TBLPROPERTIES ('transactional'='true')",
                       "plain": "PARTITIONED BY (p INT) STORED AS PARQUET TBLPROPERTIES ('transactional'='true', "
                                "'transactional_properties'='insert_only')"}.items():
        session.sql(f"CREATE TABLE {db}.{name} (id BIGINT) {kind}")
        rows = spark.range(10).selectExpr("id", *(["CAST(id % 2 AS INT) AS p"] if name == "plain" else []))
        session.insert(f"{db}.{name}", rows)
        if name == "whole":
            session.sql(f"DELETE FROM {db}.{name} WHERE id = 3")
        yield f"{db}.{name}"
    session.sql(f"CREATE TABLE {db}.bare (id BIGINT) STORED AS ORC TBLPROPERTIES ('transactional'='true', "
                "'transactional_properties'='insert_only')")
    yield f"{db}.bare"


def _open(session, tables) -> int:
    """How many read transactions of the session are open, once everybody has looked for what can go.

    What was let go may need another look: on a quiet driver Spark's listener threads refer to the last event, and so to
    its query, until the next."""
    session._txns._kept._look()
    with suppress(InvalidOperationError):
        session._txns._kept.give_way(tuple(name.split(".")) for name in tables)
    agent = f"spark {session.spark.version} {session.spark.sparkContext.applicationId}"
    found = session.client.get_open_txns_info().open_txns
    return sum(one.state == session.client.types.TxnState.OPEN and one.agentInfo == agent for one in found)


def _view(spark, rows):
    name = f"held_{uuid4().hex}"
    rows.createOrReplaceTempView(name)
    return spark.table(name)


_FORMS = {
    "join": lambda spark, rows: spark.range(10).join(rows, "id"),
    "union": lambda spark, rows: spark.range(0).union(rows.select("id")),
    "cross join": lambda spark, rows: spark.range(1).toDF("one").crossJoin(rows),
    "subtract": lambda spark, rows: spark.range(20).subtract(rows.select("id")),
    "persist": lambda spark, rows: spark.range(0).union(rows.select("id")).persist(),
    "view": _view,
    "rdd": lambda _, rows: rows.rdd,
    "rdd behind a shuffle": lambda _, rows: rows.repartition(2).rdd.map(lambda row: row),
    "argument of sql": lambda spark, rows: spark.sql("SELECT * FROM {x}", x=rows),
    "broadcast": lambda spark, rows: spark.range(10).join(rows.hint("broadcast"), "id"),
}


def test_what_is_made_of_a_frame_holds_its_snapshot(acid_session, spark, tables):
    whole, plain, bare = tables
    wanted = [*((form, whole) for form in _FORMS), *((form, name) for name in (plain, bare) for form in ("union", "rdd"))]
    counts = {whole: 9, plain: 10, bare: 0}
    made = {(form, name): _FORMS[form](spark, acid_session.table(name)) for form, name in wanted}
    assert _open(acid_session, tables) == len(made)

    assert {key: rows.count() for key, rows in made.items()} == {
        (form, name): 11 if form == "subtract" else counts[name] for form, name in wanted}
    assert _open(acid_session, tables) == len(made)

    made["persist", whole].unpersist()
    for view in [one.name for one in spark.catalog.listTables() if one.name.startswith("held_")]:
        spark.catalog.dropTempView(view)
    del made
    until(lambda: _open(acid_session, tables) == 0)


def test_rows_on_their_way_hold_their_snapshot(acid_session, tables):
    each = [acid_session.table(name).toLocalIterator() for name in tables[:2]]
    assert all(next(one) for one in each)
    assert _open(acid_session, tables) == len(each)

    assert [len(list(one)) for one in each] == [8, 9]
    del each
    until(lambda: _open(acid_session, tables) == 0)


def test_frames_of_a_snapshot_block_outlive_it(acid_session, tables):
    with acid_session.snapshot():
        whole, plain = map(acid_session.table, tables[:2])
        acid_session.table(tables[0]).count()
    del whole
    until(lambda: _open(acid_session, tables) == 1)
    assert plain.count() == 10

    del plain
    until(lambda: _open(acid_session, tables) == 0)


def test_a_read_is_let_go_on_a_driver_where_nothing_else_happens(acid_session, db):
    name = f"{db}.empty"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for _ in range(3):
        assert acid_session.sql(f"SELECT * FROM {name}").collect() == []
        until(lambda: _open(acid_session, [name]) == 0)


def test_what_was_read_and_let_go_can_be_dropped_at_once(acid_session, db):
    name = f"{db}.read"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    assert acid_session.sql(f"SELECT * FROM {name}").collect() == []
    held = acid_session.table(name)
    with pytest.raises(InvalidOperationError, match="locked by a DataFrame of this session"):
        acid_session.sql(f"DROP TABLE {name}")

    del held
    acid_session.sql(f"DROP TABLE {name}")
    assert acid_session.client.get_tables(db, "read") == []


def test_a_frame_that_holds_its_snapshot_is_the_same_to_spark_as_another_of_it(acid_session, tables):
    for name in tables[:2]:  # what an RDD brings is another's to Spark each time, held or not
        first, second = acid_session.table(name), acid_session.table(name)
        assert first.sameSemantics(second)
        assert first.join(second, "id").count() == first.count()
