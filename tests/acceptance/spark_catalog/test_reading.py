"""ACID tables in Spark's own SQL, read: what ``acid(spark)`` shows, in one snapshot, and nothing is left open."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import uuid4

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from metastore.acid_tables import deleted
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.spark import acid
from metastore.spark.catalog import CATALOG, EXTENSIONS
from tests.support.spark_sessions import connector, drop_database, skip_without_acid

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_QUERIES = (
    "SELECT * FROM {db}.facts",
    "SELECT id, place.city, get(tags, 0), size(tags) FROM {db}.facts WHERE place.city IS NOT NULL",
    "SELECT count(*), max(name) FROM {db}.facts",
    "SELECT count(*) FROM {db}.days WHERE day = DATE'2026-01-01'",
    "SELECT * FROM {db}.days WHERE day IS NULL OR region = 2",
    "SELECT * FROM {db}.days WHERE day IN (DATE'2026-01-01', DATE'2026-01-02') AND name > 'a'",
    "SELECT f.id, d.name FROM {db}.facts f LEFT JOIN {db}.days d ON f.id = d.id",
    "SELECT id FROM {db}.facts WHERE id IN (SELECT id FROM {db}.days WHERE region = 1) AND id < (SELECT max(id) FROM {db}.days)",
    "SELECT id, name FROM {db}.old WHERE id > 1",
    "SELECT id, ROW__ID FROM {db}.old",
    "SELECT id, ROW__ID.writeid, ROW__ID.rowid FROM {db}.days",
    "WITH w AS (SELECT id FROM {db}.facts) SELECT count(*) FROM w a JOIN w b ON a.id < b.id",
)
_OF_ONE_TABLE = ("SELECT * FROM {db}.facts", "SELECT id, ROW__ID FROM {db}.old", "SELECT id, ROW__ID.writeid, ROW__ID.rowid FROM {db}.days")


@pytest.fixture(scope="module")
def writer(spark):
    """``acid(spark)``, which is not what is tested."""
    skip_without_acid(spark)
    with acid(spark) as session:
        yield session


@pytest.fixture(scope="module")
def tables(writer, lakehouse) -> Iterator[str]:
    """``facts``: nested, with deletes. ``days``: partitioned, with an update. ``old``: files from before its conversion."""
    name = f"db_{uuid4().hex[:10]}"
    for statement in (
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.facts (id INT, name STRING, place STRUCT<city: STRING, zip: INT>, tags ARRAY<STRING>) {_ACID}",
        f"""INSERT INTO {name}.facts VALUES (1, 'a', named_struct('city', 'x', 'zip', 1), array('p', 'q')),
            (2, 'b', NULL, NULL), (3, 'c', named_struct('city', 'z', 'zip', 3), array())""",
        f"INSERT INTO {name}.facts VALUES (4, 'd', NULL, array('r')), (5, NULL, NULL, NULL)",
        f"DELETE FROM {name}.facts WHERE id IN (2, 4)",
        f"CREATE TABLE {name}.days (id INT, name STRING) PARTITIONED BY (day DATE, region INT) {_ACID}",
        f"""INSERT INTO {name}.days VALUES (1, 'a', DATE'2026-01-01', 1), (2, 'b', DATE'2026-01-01', 2), (3, 'c', DATE'2026-01-02', 1),
            (4, 'd', NULL, 1), (5, 'e', DATE'2026-01-02', 2)""",
        f"CREATE TABLE {name}.chosen (day DATE, note STRING) {_ACID}",
        f"INSERT INTO {name}.chosen VALUES (DATE'2026-01-02', 'this'), (DATE'2026-01-01', 'other')",
        f"UPDATE {name}.days SET name = 'changed' WHERE region = 1",
        f"CREATE TABLE {name}.old STORED AS ORC AS SELECT CAST(id AS INT) AS id, CAST(id AS STRING) AS name FROM range(0, 6, 1, 2)",
        f"ALTER TABLE {name}.old SET TBLPROPERTIES ('transactional'='true')",
        f"DELETE FROM {name}.old WHERE id IN (1, 4)",
    ):
        writer.sql(statement)
    yield name
    drop_database(lakehouse.uri, name)


@pytest.fixture(scope="module")
def expected(writer, tables) -> dict[str, list[str]]:
    rows = {query: _rows(writer.sql(query.format(db=tables))) for query in _QUERIES}
    writer.close()  # which ends the transactions of what it has read
    return rows


def _rows(frame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.mark.parametrize(("limit", "queries"), [(deleted.MAX_EVENTS, _QUERIES), (0, _OF_ONE_TABLE)], ids=["bits", "files"])
def test_a_query_shows_what_acid_shows(catalog, tables, expected, open_transactions, monkeypatch, limit, queries) -> None:
    """Deleted rows come as bits, or where they are too many as the files that the tasks read."""
    monkeypatch.setattr(deleted, "MAX_EVENTS", limit)

    shown = {query: _rows(catalog.sql(query.format(db=tables))) for query in queries}
    assert shown == {query: expected[query] for query in queries}
    assert [row.id for row in catalog.read.table(f"{tables}.facts").orderBy("id").collect()] == [1, 3, 5]
    assert open_transactions() == []


def test_a_statement_has_one_snapshot_of_all_its_tables(catalog, acid_session, db, monkeypatch) -> None:
    """A row is committed to both tables after the first of them is planned: neither shows it, nor does the subquery."""
    calls, plan = [], planner_server.CALLS["plan"].answer
    for table in ("a", "b"):
        acid_session.sql(f"CREATE TABLE {db}.{table} (id INT) {_ACID}")

    def answer(call):
        plan_of_call = plan(call)
        if not calls:
            acid_session.sql(f"INSERT INTO {db}.a VALUES (1)")
            acid_session.sql(f"INSERT INTO {db}.b VALUES (1)")
        calls.append(call.body.text("table"))
        return plan_of_call

    monkeypatch.setitem(planner_server.CALLS, "plan", Method(answer))
    catalog.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT id FROM {db}.b")
    counts = catalog.sql(f"""SELECT (SELECT count(*) FROM seen), (SELECT count(*) FROM {db}.a),
                                    count(*) FROM {db}.a JOIN {db}.b ON a.id = b.id""").first()
    catalog.catalog.dropTempView("seen")

    assert (tuple(counts), sorted(calls)) == ((0, 0, 0), [f"{db}.a", f"{db}.a", f"{db}.b", f"{db}.b"])
    assert catalog.sql(f"SELECT count(*) FROM {db}.a JOIN {db}.b ON a.id = b.id").first() == (1,)


def test_what_is_planned_before_it_runs_is_not_left_open(catalog, tables, db, open_transactions) -> None:
    """Spark's Thrift server shows the plan of a query first. What runs then lacks the branches that turn out to be empty."""
    catalog.sql(f"CREATE TABLE {db}.empty (id INT) {_ACID}")
    frame = catalog.sql(f"SELECT count(*) FROM {tables}.facts f JOIN {db}.empty e ON f.id = e.id WHERE f.id IN (SELECT id FROM {db}.empty)")
    assert "AcidScan" in frame._jdf.queryExecution().toString()
    assert frame.collect() == [(0,)]
    assert open_transactions() == []


@pytest.mark.parametrize("statement", [
    "EXPLAIN SELECT * FROM {db}.days d JOIN {db}.facts f ON f.id = d.id WHERE region = 1", "DESCRIBE {db}.days", "DESCRIBE EXTENDED {db}.facts",
    "SHOW CREATE TABLE {db}.days", "SHOW TABLES IN {db}", "SELECT nothing FROM {db}.facts", "SELECT * FROM {db}.nothing",
    "SELECT assert_true(id > 100) FROM {db}.facts", "CREATE TABLE {db}.copy USING parquet AS SELECT id FROM {db}.facts",
])
def test_nothing_is_left_open(catalog, tables, open_transactions, statement) -> None:
    try:
        shown = str(catalog.sql(statement.format(db=tables)).collect())
    except (PySparkException, Py4JJavaError) as error:
        shown = str(error)

    assert shown
    assert open_transactions() == []


def test_the_past_is_read_by_write_id_and_by_time(catalog, tables) -> None:
    def ids(version: str) -> list[int]:
        return [row.id for row in catalog.sql(f"SELECT id FROM {tables}.facts {version} ORDER BY id").collect()]

    assert [ids("VERSION AS OF 1"), ids("VERSION AS OF 2"), ids("VERSION AS OF 3")] == [[1, 2, 3], [1, 2, 3, 4, 5], [1, 3, 5]]
    assert ids("TIMESTAMP AS OF current_timestamp()") == [1, 3, 5]
    history = catalog.sql(f"CALL system.history('{tables}.facts')").selectExpr("unix_millis(committed_at) AS ms").collect()
    *_, second, first = (row.ms for row in history)
    between = (first + second) // 2
    assert first < between < second
    assert ids(f"TIMESTAMP AS OF timestamp_millis({between})") == [1, 2, 3]
    read = catalog.read.option("timestampAsOf", f"{datetime.fromtimestamp(between / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}")
    assert sorted(row.id for row in read.table(f"{tables}.facts").collect()) == [1, 2, 3]
    with pytest.raises(Exception, match=r"The version 'x' of the table .*facts is no write id"):
        ids("VERSION AS OF 'x'")


def test_a_condition_on_keys_leaves_out_partitions_before_anything_is_listed(catalog, tables, monkeypatch) -> None:
    plan = planner_server.CALLS["plan"].answer
    chosen = []

    def answer(call):
        planned = plan(call)
        chosen.append(sorted(directory["partition"] for directory in planned["directories"]))
        return planned

    monkeypatch.setitem(planner_server.CALLS, "plan", Method(answer))
    for where in ("region = 2", "day = DATE'2026-01-02' AND name > 'a'", "day IS NULL", "upper(name) = 'B' AND region IN (2, 7)"):
        catalog.sql(f"SELECT count(*) FROM {tables}.days WHERE {where}").collect()

    assert chosen == [
        ["day=2026-01-01/region=2", "day=2026-01-02/region=2"], ["day=2026-01-02/region=1", "day=2026-01-02/region=2"],
        ["day=__HIVE_DEFAULT_PARTITION__/region=1"], ["day=2026-01-01/region=2", "day=2026-01-02/region=2"]]


def test_a_join_leaves_out_partitions_while_it_runs(catalog, tables) -> None:
    """Of the files of ``days`` only those of the days that the other side has are read."""
    frame = catalog.sql(f"""SELECT d.id FROM {tables}.days d JOIN {tables}.chosen c ON d.day = c.day WHERE c.note = 'this'""")

    assert sorted(row.id for row in frame.collect()) == [3, 5]
    assert "dynamicpruning" in frame._jdf.queryExecution().executedPlan().toString()


def test_a_count_comes_from_footers_where_nothing_is_deleted(catalog, tables) -> None:
    whole = catalog.sql(f"SELECT count(*), count(1) FROM {tables}.chosen")
    deleted_from = catalog.sql(f"SELECT count(*) FROM {tables}.facts")
    chosen = catalog.sql(f"SELECT count(*) FROM {tables}.chosen WHERE note = 'this'")

    assert [tuple(frame.first()) for frame in (whole, deleted_from, chosen)] == [(2, 2), (3,), (1,)]
    plans = [frame._jdf.queryExecution().executedPlan().toString() for frame in (whole, deleted_from, chosen)]
    assert ["count(*) from footers" in plan for plan in plans] == [True, False, False]


def test_bounds_and_counts_come_from_footers_where_these_are_exact(catalog, db) -> None:
    """Random rows, beside the same rows in parquet, which Spark reads: whatever footers do not know for sure is read."""
    chance = random.Random(19)
    days = [date(1999, 12, 31), date(2026, 11, 24), date(1969, 7, 20), None]
    rows = [
        (part, *(chance.choice([None, 0, -(2**bits), 2**bits - 1, chance.randrange(100)]) for bits in (7, 15, 31, 62)), chance.choice(days),
         date(1500, 1, chance.randrange(1, 28)), chance.choice(["a", "b", None]), chance.choice([1.5, float("nan"), None]))
        for part in range(2) for _ in range(chance.randrange(1, 40))] + [(2, *[None] * 8)]
    columns = "part INT, b TINYINT, s SMALLINT, i INT, l BIGINT, d DATE, old DATE, t STRING, f DOUBLE"
    catalog.createDataFrame(rows, columns).write.format("parquet").saveAsTable(f"{db}.model")
    catalog.sql(f"CREATE TABLE {db}.bounds ({columns}) {_ACID}")
    exact = ["count(*)", *(f"{function}({name})" for name in "bsild" for function in ("min", "max", "count")), "count(t)", "count(f)", "count(old)"]
    read = ["min(t)", "max(f)", "min(old)", "count(DISTINCT i)", "sum(s)", "min(i % 7)", "count(i), max(t)"]

    def pushed(query: str, table: str) -> bool:
        frame = catalog.sql(f"SELECT {query} FROM {db}.{table}")
        assert str(frame.collect()) == str(catalog.sql(f"SELECT {query} FROM {db}.model").collect()), query
        return "from footers" in frame._jdf.queryExecution().executedPlan().toString()

    assert tuple(catalog.sql(f"SELECT count(i), min(i), max(d) FROM {db}.bounds").first()) == (0, None, None)
    for part in range(3):
        catalog.sql(f"INSERT INTO {db}.bounds SELECT * FROM {db}.model WHERE part = {part}")
    assert pushed(", ".join(exact), "bounds")
    assert [query for query in read if pushed(query, "bounds")] == []

    catalog.sql(f"INSERT INTO {db}.bounds VALUES (9, 9, 9, 9, 9, DATE'2999-01-01', NULL, NULL, NULL)")
    catalog.sql(f"DELETE FROM {db}.bounds WHERE part = 9")
    assert not pushed("count(b), max(d)", "bounds")


def test_footers_of_other_columns_than_the_tables_are_not_believed(catalog, db) -> None:
    """Files from before a column was added, and from before its type was widened."""
    def look(query: str) -> tuple[tuple[object, ...], bool]:
        frame = catalog.sql(f"SELECT {query} FROM {db}.aged")
        return tuple(frame.collect()[0]), "from footers" in frame._jdf.queryExecution().executedPlan().toString()

    catalog.sql(f"CREATE TABLE {db}.aged (id INT, n SMALLINT) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.aged VALUES (1, -5), (2, NULL)")
    catalog.sql(f"ALTER TABLE {db}.aged ADD COLUMNS (late INT)")
    assert look("count(late), min(late), max(late)") == ((0, None, None), False)
    catalog.sql(f"INSERT INTO {db}.aged VALUES (3, 7, 11), (4, 8, NULL)")
    assert look("count(late), min(late), max(late)") == ((1, 11, 11), False)
    assert look("count(*), count(n), min(n), max(id)") == ((4, 3, -5, 4), True)
    catalog.sql(f"ALTER TABLE {db}.aged ALTER COLUMN n TYPE BIGINT")
    catalog.sql(f"INSERT INTO {db}.aged VALUES (5, {2**40}, 12)")
    assert look("count(n), min(n), max(n)") == ((4, -5, 2**40), False)
    assert look("min(id), count(*)") == ((1, 5), True)


def test_a_limit_reads_as_many_files_as_it_needs(catalog, tables) -> None:
    """Where rows are deleted, or chosen by a condition, footers do not say enough."""
    limited = catalog.sql(f"SELECT count(*) FROM (SELECT day FROM {tables}.chosen LIMIT 1)")
    both = catalog.sql(f"(SELECT day FROM {tables}.chosen LIMIT 1) UNION ALL SELECT day FROM {tables}.chosen")
    deleted_from = catalog.sql(f"SELECT id FROM {tables}.facts LIMIT 3")
    filtered = catalog.sql(f"SELECT id FROM {tables}.facts WHERE id > 1 LIMIT 1")

    assert [limited.first()[0], both.count(), deleted_from.count(), filtered.count()] == [1, 3, 3, 1]
    plans = [frame._jdf.queryExecution().executedPlan().toString() for frame in (limited, deleted_from, filtered)]
    assert [", limit " in plan for plan in plans] == [True, True, False]


def test_save_as_table_is_refused_over_a_transactional_table(catalog, tables) -> None:
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="transact|acid|ACID"):
            catalog.range(1).selectExpr("CAST(id AS INT) AS id").write.mode(mode).format("orc").saveAsTable(f"{tables}.facts")

    assert catalog.sql(f"SELECT count(*) FROM {tables}.facts").first() == (3,)


@pytest.mark.slow  # it starts a Spark of its own
def test_the_shell_that_ships_with_spark_reads(lakehouse, planner, tables) -> None:
    """Two settings and a jar, without Python."""
    if not connector():
        pytest.skip("there is no Java compiler")
    shell = Path(pyspark.__file__).parent / "bin" / "spark-sql"
    settings = {"spark.jars": connector(), "spark.sql.extensions": EXTENSIONS, "spark.sql.catalog.spark_catalog": CATALOG,
                "spark.sql.catalog.spark_catalog.planner": planner, "spark.hadoop.hive.metastore.uris": lakehouse.uri, "spark.ui.enabled": "false",
                "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.master": "local[1]",
                "spark.sql.warehouse.dir": lakehouse.warehouse.as_uri()}
    done = subprocess.run(
        [shell, *(f"--conf={key}={value}" for key, value in settings.items()), "-e", f"SELECT count(*), max(id) FROM {tables}.facts"],
        capture_output=True, text=True, check=False, cwd=lakehouse.warehouse, env={**os.environ, "PYSPARK_PYTHON": sys.executable})

    assert (done.returncode, done.stdout.split()) == (0, ["3", "5"]), done.stderr[-3000:]
