"""CALL: the planner's procedures with Spark's arguments, defaults and types, and Spark's own refusals."""

import shutil

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import BooleanType, LongType, StringType, TimestampType

from tests.support.spark_sessions import is_before

pytestmark = pytest.mark.spark


def test_procedures_answer_typed_rows(catalog, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (n INT) PARTITIONED BY (k STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 'a'), (2, 'b')")
    catalog.sql(f"DELETE FROM {db}.t WHERE n = 2")

    history = catalog.sql(f"CALL spark_catalog.system.history('{db}.t')")
    assert {field.name: type(field.dataType) for field in history.schema.fields} == {
        "write_id": LongType, "txn_id": LongType, "committed_at": TimestampType, "started_at": TimestampType, "user": StringType,
        "host": StringType, "agent_info": StringType, "operations": StringType, "partitions": LongType, "rows_inserted": LongType, "rows_deleted": LongType,
        "complete": BooleanType}
    deleted, inserted = history.collect()
    assert (deleted.write_id, deleted.operations, deleted.partitions) == (2, "delete", 1)
    assert (inserted.write_id, inserted.operations, inserted.partitions) == (1, "insert", 2)
    assert inserted.started_at <= inserted.committed_at <= deleted.committed_at
    assert inserted.agent_info.startswith("spark ")

    [request] = catalog.sql(f"CALL system.compact(table => '{db}.t', type => 'minor', partition => 'k=b')").collect()
    assert (request.accepted, request.partition, request.state, request.message) == (True, "k=b", "initiated", None)
    assert catalog.sql("CALL system.abort_transactions(array(4711), owner_gone => true)").first().aborted is False
    if not is_before(catalog, "4.1"):  # 4.0 has no SHOW PROCEDURES
        assert catalog.sql("SHOW PROCEDURES IN system").count() > 5

    for statement, refusal in (
            ("nothing()", "FAILED_TO_LOAD_ROUTINE"),
            ("compact()", r"REQUIRED_PARAMETER_NOT_FOUND.*`table`"),
            ("compact('t', speed => 9)", "UNRECOGNIZED_PARAMETER_NAME.*`speed`")):
        with pytest.raises(AnalysisException, match=f"(?s){refusal}"):
            catalog.sql(f"CALL system.{statement}")
    with pytest.raises(Exception, match=f"{db}.none"):
        catalog.sql(f"CALL system.history('{db}.none')")


def test_repair_makes_partitions_of_directories(catalog, lakehouse, db, open_transactions) -> None:
    catalog.sql(f"CREATE TABLE {db}.p (n INT) PARTITIONED BY (k INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {db}.p VALUES (1, 1), (2, 2)")
    place = lakehouse.warehouse / f"{db}.db" / "p"
    shutil.copytree(place / "k=2", place.parent / "kept")
    catalog.sql(f"ALTER TABLE {db}.p DROP PARTITION (k = 2)")
    shutil.move(place.parent / "kept", place / "k=2")
    shutil.rmtree(place / "k=1")

    planned = [(row.partition, row.action) for row in catalog.sql(f"CALL system.repair('{db}.p', 'sync', true)").collect()]
    assert planned == [("k=2", "added"), ("k=1", "dropped")]
    assert catalog.sql(f"CALL system.repair(table => '{db}.p')").first().action == "added"
    assert [row.partition for row in catalog.sql(f"SHOW PARTITIONS {db}.p").collect()] == ["k=1", "k=2"]
    assert catalog.sql(f"CALL system.repair(table => '{db}.p', mode => 'DROP')").first().action == "dropped"
    assert [tuple(row) for row in catalog.table(f"{db}.p").collect()] == [(2, 2)]
    assert open_transactions() == []


def test_restore_gives_back_the_rows_of_a_write_id_or_a_time(catalog, db, open_transactions) -> None:
    """Partitions that had no rows then have none afterwards, and what a restore did is undone by another."""
    catalog.sql(f"CREATE TABLE {db}.r (n INT) PARTITIONED BY (k STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")

    def rows() -> list[tuple[int, str]]:
        return sorted(tuple(row) for row in catalog.table(f"{db}.r").collect())

    then = []
    for statement in (
            "INSERT INTO {} VALUES (1, 'a'), (2, 'b')",
            "UPDATE {} SET n = n + 10 WHERE k = 'b'",
            "INSERT OVERWRITE {} VALUES (3, 'a'), (4, 'c')"):
        catalog.sql(statement.format(f"{db}.r"))
        then.append(rows())
    assert then == [[(1, "a"), (2, "b")], [(1, "a"), (12, "b")], [(3, "a"), (4, "c"), (12, "b")]]

    [done] = catalog.sql(f"CALL spark_catalog.system.restore('{db}.r', to_write_id => 1)").collect()
    assert (done.table, done.restored_write_id, done.previous_write_id) == (f"{db}.r", 1, 3)
    assert rows() == then[0]
    at = catalog.sql(f"CALL system.history('{db}.r')").where("write_id = 2").first().committed_at
    catalog.sql(f"CALL system.restore('{db}.r', to_timestamp => TIMESTAMP'{at}')")
    assert rows() == then[1]
    catalog.sql(f"CALL system.restore('{db}.r', to_write_id => 4)")  # what the first restore made
    assert rows() == then[0]
    history = catalog.sql(f"CALL system.history('{db}.r')").collect()
    assert [(row.write_id, row.rows_inserted, row.rows_deleted) for row in history] == [
        (6, 2, 0), (5, 2, 0), (4, 2, 0), (3, 2, 0), (2, 1, 1), (1, 2, 0)]
    with pytest.raises(Exception, match="write ids up to 6; as_of_write_id=9"):
        catalog.sql(f"CALL system.restore('{db}.r', to_write_id => 9)")
    assert open_transactions() == []


@pytest.fixture
def numbered(catalog, db):
    """Yield a database whose name is a number; Spark quotes such a name when it is asked for the current database."""
    name = db.removeprefix("db_").translate(str.maketrans("abcdef", "123456"))
    catalog.sql(f"CREATE DATABASE `{name}`")
    yield name
    catalog.sql("USE default")
    catalog.sql(f"DROP DATABASE `{name}` CASCADE")


def test_a_table_without_a_database_is_in_the_current_one(catalog, db, numbered) -> None:
    """For every procedure that has a table."""
    for database in (db, numbered):
        catalog.sql(f"USE `{database}`")
        catalog.sql("CREATE TABLE t (n INT) PARTITIONED BY (k STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
        catalog.sql("INSERT INTO t VALUES (1, 'a')")
        catalog.sql("INSERT INTO t VALUES (2, 'b')")

        assert catalog.sql("CALL system.analyze('t')").first().table == f"{database}.t"
        assert catalog.sql("CALL system.restore('t', to_write_id => 1)").first().table == f"{database}.t"
        assert {row.write_id for row in catalog.sql("CALL system.history('t')").collect()} == {1, 2, 3}
        assert catalog.sql("CALL system.repair('t')").collect() == []
        assert catalog.sql("CALL system.compact('t', partition => 'k=a')").first().accepted
        assert catalog.sql("CALL system.show_compactions('t')").first().db == database
        assert catalog.sql("CALL system.show_locks('t')").collect() == []
        assert catalog.sql("CALL system.stream_positions('t')").collect() == []
    catalog.sql("USE default")
    with pytest.raises(Exception, match=r"default\.t"):
        catalog.sql("CALL system.history('t')")


def test_so_it_is_for_a_session_of_acid(session, catalog, numbered) -> None:
    catalog.sql(f"USE `{numbered}`")
    catalog.sql("CREATE TABLE t (n INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")

    assert session.insert("t", catalog.range(3).selectExpr("CAST(id AS INT) AS n")) == 3
    assert session.table("t").count() == 3
