"""Every way in which Spark writes: into a transactional table it is one transaction, or it is refused and nothing has changed."""

import socket
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from metastore.files import Files
from metastore.ids import table_name
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.spark.catalog import CATALOG
from metastore.spark.check.table_check import check_table
from tests.support.spark_sessions import is_before

pytestmark = pytest.mark.spark
_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


@pytest.fixture
def two(catalog, db):
    """Create two tables with the rows 1 and 11, and return their names."""
    for name, row in (("a", 1), ("b", 11)):
        catalog.sql(f"CREATE TABLE {db}.{name} (id INT) {_ACID}")
        catalog.sql(f"INSERT INTO {db}.{name} VALUES ({row})")
    return f"{db}.a", f"{db}.b"


@pytest.fixture
def called(monkeypatch):
    """Return a list of the calls by which the planner begins and ends transactions that write; a read may end later."""
    names = []
    for name in ("begin", "commit", "abort"):
        def answer(call, name=name, answer=planner_server.CALLS[name].answer):
            if call.body.text("kind", "DEFAULT") == "DEFAULT":
                names.append(name)
            return answer(call)

        monkeypatch.setitem(planner_server.CALLS, name, Method(answer))
    return names


@pytest.fixture
def no_block_is_left(catalog):
    """Also by a test that fails: others share the session."""
    yield
    with suppress(PySparkException):
        catalog.sql("CALL system.rollback()")


def ids(catalog, name):
    return sorted(row.id for row in catalog.table(name).collect())


def files(client, name):
    place = Path(client.get_table(*name.split(".")).sd.location.removeprefix("file:"))
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


# -- FROM ... INSERT ... INSERT ...


def test_several_inserts_are_one_transaction(catalog, two, called, open_transactions) -> None:
    a, b = two
    catalog.sql(f"FROM (SELECT CAST(rand() * 1000000 AS INT) + 100 AS id FROM range(20)) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id WHERE id > 0")
    assert called == ["begin", "commit"]
    drawn = ids(catalog, a)[1:]
    assert len(set(drawn)) > 10
    assert ids(catalog, b) == [11, *drawn]

    called.clear()
    catalog.sql(f"WITH w AS (SELECT CAST(rand() * 1000 AS INT) + 2000000 AS id) FROM w INSERT OVERWRITE {a} SELECT id INSERT OVERWRITE {b} SELECT id")
    assert called == ["begin", "commit"]
    assert ids(catalog, a) == ids(catalog, b)

    called.clear()
    before = ids(catalog, a)
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        catalog.sql(f"FROM (SELECT 3 AS id) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id / 0")
    assert called == ["begin", "abort"]
    assert "Union" in catalog.sql(f"EXPLAIN FROM (SELECT 4 AS id) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id").first()[0]
    assert ids(catalog, a) == ids(catalog, b) == before
    assert open_transactions() == []


def test_what_another_thread_writes_meanwhile_is_no_part_of_it(catalog, db, two, monkeypatch) -> None:
    a, b = two
    catalog.sql(f"CREATE TABLE {db}.other (id INT) {_ACID}")
    publish, published = planner_server.CALLS["publish"].answer, []

    def answer(call):
        published.append(call)
        if len(published) == 1:  # in a thread of the planner, while the first INSERT waits for its answer
            catalog.sql(f"INSERT INTO {db}.other VALUES (7)")
        return publish(call)

    monkeypatch.setitem(planner_server.CALLS, "publish", Method(answer))
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        catalog.sql(f"FROM (SELECT 3 AS id) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id / 0")

    assert (ids(catalog, a), ids(catalog, b), ids(catalog, f"{db}.other")) == ([1], [11], [7])


def test_several_inserts_of_a_block_are_its_own_and_leave_nothing_when_they_fail(catalog, two, called, no_block_is_left) -> None:
    a, b = two
    catalog.sql("CALL system.begin()")
    catalog.sql(f"FROM (SELECT 2 AS id) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id")
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        catalog.sql(f"FROM (SELECT 3 AS id) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id / 0")
    catalog.sql("CALL system.commit()")

    assert called == ["begin", "commit"]
    assert (ids(catalog, a), ids(catalog, b)) == ([1, 2], [2, 11])
    assert catalog.sql(f"CALL system.history('{a}')").first().rows_inserted == 1


def test_several_inserts_of_a_block_that_fail_leave_what_another_thread_wrote_in_it(catalog, client, db, two, called, monkeypatch, no_block_is_left) -> None:
    a, b = two
    catalog.sql(f"CREATE TABLE {db}.other (id INT) {_ACID}")
    publish, published = planner_server.CALLS["publish"].answer, []

    def answer(call):
        published.append(call)
        if len(published) == 1:  # in a thread of the planner, while the first INSERT waits for its answer
            catalog.sql(f"INSERT INTO {db}.other VALUES (7)")
        return publish(call)

    catalog.sql("CALL system.begin()")
    catalog.sql(f"INSERT INTO {b} VALUES (12)")
    monkeypatch.setitem(planner_server.CALLS, "publish", Method(answer))
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        catalog.sql(f"FROM (SELECT 3 AS id) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id / 0")
    catalog.sql("CALL system.commit()")

    assert called == ["begin", "commit"]
    assert (ids(catalog, a), ids(catalog, b), ids(catalog, f"{db}.other")) == ([1], [11, 12], [7])
    assert [one for one in check_table(client, Files(), table_name(*a.split("."))) if not one.finding.is_unneeded] == []


def test_what_fails_says_why_also_where_the_planner_fails_next(catalog, two, monkeypatch, open_transactions) -> None:
    abort = planner_server.CALLS["abort"].answer

    def answer(call):
        abort(call)
        raise OSError

    a, b = two
    monkeypatch.setitem(planner_server.CALLS, "abort", Method(answer))
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        catalog.sql(f"FROM (SELECT 3 AS id) s INSERT INTO {a} SELECT id INSERT INTO {b} SELECT id / 0")
    assert (ids(catalog, a), ids(catalog, b)) == ([1], [11])
    assert open_transactions() == []


def test_several_inserts_with_others_among_them_are_refused(catalog, db, two, tmp_path) -> None:
    a, b = two
    place = (tmp_path / "copy").as_uri()
    to_directory = f"INSERT OVERWRITE DIRECTORY '{place}' USING orc SELECT id"
    catalog.sql(f"CREATE TABLE {db}.p (id INT) STORED AS ORC")
    since = "|only partitions can be overwritten"  # where Spark takes REPLACE WHERE for an INSERT as others
    for inserts in (f"{to_directory} INSERT INTO {a} SELECT id", f"INSERT INTO {a} SELECT id INSERT INTO {b} REPLACE WHERE id = 11 SELECT id"):
        with pytest.raises(PySparkException, match=rf"into {db}.* is one transaction.* by statements of their own{since}"):
            catalog.sql(f"FROM (SELECT 3 AS id) s {inserts}")
    assert "Union" in catalog.sql(f"EXPLAIN FROM (SELECT 3 AS id) s {to_directory} INSERT INTO {a} SELECT id").first()[0]
    catalog.sql(f"FROM {a} {to_directory} INSERT INTO {db}.p SELECT id")

    assert (ids(catalog, a), ids(catalog, b), ids(catalog, f"{db}.p")) == ([1], [11], [1])
    assert catalog.read.orc(place).first().id == 1


def test_several_inserts_into_plain_tables_stay_sparks_own(catalog, db, two, called) -> None:
    for name in "pq":
        catalog.sql(f"CREATE TABLE {db}.{name} (id INT) STORED AS ORC")
    catalog.sql(f"FROM {two[0]} INSERT INTO {db}.p SELECT id INSERT INTO {db}.q SELECT id + 1")
    assert (ids(catalog, f"{db}.p"), ids(catalog, f"{db}.q")) == ([1], [2])

    called.clear()
    catalog.sql(f"FROM (SELECT 5 AS id) s INSERT INTO {db}.p SELECT id INSERT INTO {two[0]} SELECT id")
    assert called == ["begin", "commit"]
    assert (ids(catalog, f"{db}.p"), ids(catalog, two[0])) == ([1, 5], [1, 5])


# -- writes that ask no catalog


SAVES = {f"{how} {mode}": (how, mode) for how in ("hive", "orc", "parquet", "") for mode in ("append", "overwrite", "ignore", "error")}


def test_save_as_table_is_refused_in_every_format_and_mode(catalog, client, two) -> None:
    a, _ = two
    before = files(client, a)
    for how, mode in SAVES.values():
        write = catalog.sql("SELECT 9 AS id").write.mode(mode)
        with pytest.raises(PySparkException, match=r"writeTo.*insertInto"):
            (write.format(how) if how else write).saveAsTable(a)
            pytest.fail(f"saveAsTable as {how} {mode} is not refused")
    assert files(client, a) == before
    assert ids(catalog, a) == [1]


def test_insert_into_is_a_transaction_whatever_the_format(catalog, lakehouse, client, two, called) -> None:
    a, _ = two
    for how in ("hive", "orc", "parquet"):
        catalog.sql("SELECT 9 AS id").write.format(how).mode("append").insertInto(a)
        assert ids(catalog, a) == [1, 9]
        catalog.sql("SELECT 1 AS id").write.format(how).mode("overwrite").insertInto(a)
        assert ids(catalog, a) == [1]
    assert called == ["begin", "commit"] * 6
    assert [one for one in check_table(client, Files(), table_name(*a.split("."))) if not one.finding.is_unneeded] == []


BY_PATH = {
    "append": lambda rows, place, _: rows.write.mode("append").orc(place),
    "overwrite": lambda rows, place, _: rows.write.mode("overwrite").parquet(place),
    "save": lambda rows, place, _: rows.write.format("json").mode("append").save(place),
    "a partition": lambda rows, place, _: rows.write.mode("append").orc(f"{place}/k=1"),
    "the database": lambda rows, place, _: rows.write.mode("overwrite").orc(place.rpartition("/")[0]),
    "the path alone": lambda rows, place, _: rows.write.mode("append").orc(place.removeprefix("file:")),
    "INSERT OVERWRITE DIRECTORY": lambda rows, place, _: rows.sparkSession.sql(f"INSERT OVERWRITE DIRECTORY '{place}' USING orc SELECT 77 AS id"),
    "Hive's": lambda rows, place, _: rows.sparkSession.sql(f"INSERT OVERWRITE DIRECTORY '{place}' STORED AS ORC SELECT 77 AS id"),
    "a table there": lambda rows, place, db: rows.write.option("path", place).format("orc").saveAsTable(f"{db}.thief"),
    "CREATE TABLE AS": lambda rows, place, db: rows.sparkSession.sql(f"CREATE TABLE {db}.thief USING orc LOCATION '{place}' AS SELECT 77 AS id"),
    "Hive's CREATE TABLE AS": lambda rows, place, db: rows.sparkSession.sql(
        f"CREATE TABLE {db}.thief STORED AS ORC LOCATION '{place}' AS SELECT 77 AS id"),
    "INSERT INTO an external table": lambda rows, _, db: rows.sparkSession.sql(f"INSERT INTO {db}.beside SELECT 77 AS id"),
    "Hive's external table": lambda rows, _, db: rows.sparkSession.sql(f"INSERT INTO {db}.hives SELECT 77 AS id"),
}


def test_what_is_written_by_a_path_into_a_table_is_refused(catalog, db, client, lakehouse, two, tmp_path) -> None:
    a, _ = two
    place, elsewhere = client.get_table(db, "a").sd.location, f"{lakehouse.warehouse.as_uri()}/{db}-elsewhere"
    catalog.sql(f"CREATE TABLE {db}.beside (id INT) USING orc LOCATION '{place}'")  # refused, Spark hides the place in a property
    hives = f"CREATE EXTERNAL TABLE {db}.hives (id INT) STORED AS TEXTFILE LOCATION"
    with pytest.raises(PySparkException, match="a transactional table shares its directory with nobody"):
        catalog.sql(f"{hives} '{place}'")
    catalog.sql(f"{hives} '{elsewhere}'")
    with lakehouse.app.database.begin() as pg:  # as it could be made before
        pg.sql("UPDATE tables SET location = %s, sd = replace(replace(sd::text, %s, %s), %s, %s)::jsonb WHERE db = %s AND name = 'hives'",
               (place, elsewhere, place, elsewhere.replace("file:///", "file:/"), place, db))
    catalog.conf.set("spark.sql.legacy.allowNonEmptyLocationInCTAS", "true")  # else Spark refuses it where files are
    before = files(client, a)
    rows = catalog.sql("SELECT 77 AS id")
    for way, write in BY_PATH.items():
        with pytest.raises(PySparkException, match=rf"Nothing is written to .* transactional table {db}\.[ab] .*INSERT INTO {db}|shares its directory with nobody"):
            write(rows, place, db)
            pytest.fail(f"{way} is not refused")
        assert files(client, a) == before, way
    with pytest.raises(PySparkException, match=f"Nothing is written to .* transactional table {a}"):
        (catalog.readStream.format("rate").load().writeStream.format("orc").option("checkpointLocation", str(tmp_path / "c"))
         .start(place).awaitTermination(60))
    catalog.conf.unset("spark.sql.legacy.allowNonEmptyLocationInCTAS")
    assert files(client, a) == ["_spark_metadata", *before]  # Spark makes this first; readers pass over it
    rows.write.orc(str(tmp_path / "elsewhere"))
    assert ids(catalog, a) == [1]


def test_what_is_written_where_nobody_can_be_asked_is_written_and_named(catalog, spark, client, two, tmp_path, monkeypatch) -> None:
    """Also by a session that has no catalog."""
    def fails(_):
        raise OSError

    a, b = two
    places = {name: client.get_table(*name.split(".")).sd.location for name in two}
    spark.newSession().sql("SELECT 77 AS id").write.mode("append").orc(places[a])
    monkeypatch.setitem(planner_server.CALLS, "table_at", Method(fails))
    catalog.sql("SELECT 77 AS id").write.orc(str(tmp_path / "elsewhere"))
    catalog.sql("SELECT 77 AS id").write.mode("append").orc(places[b])

    for name in two:
        found = [str(one) for one in check_table(client, Files(), table_name(*name.split("."))) if not one.finding.is_unneeded]
        assert any("part-" in one for one in found), (name, found)


def test_what_has_no_place_of_files_is_written(catalog) -> None:
    rows = catalog.sql("SELECT 77 AS id")
    for path in ("", "a:b", "nowhere://host/place"):
        with pytest.raises(PySparkException, match="does not allow create table as select|not a valid DFS|JDBC|url|dbtable") as refused:
            rows.write.format("jdbc").mode("append").option("path", path).save()
        assert "Path" not in str(refused.value)


@pytest.mark.slow
def test_a_planner_that_hangs_is_asked_once_in_a_minute(catalog, tmp_path) -> None:
    session = catalog.newSession()
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        session.conf.set("spark.sql.catalog.mute", CATALOG)
        session.conf.set("spark.sql.catalog.mute.planner", f"http://127.0.0.1:{hangs.getsockname()[1]}")
        for place in "ab":
            session.sql("SELECT 77 AS id").write.orc(str(tmp_path / place))
        hangs.settimeout(0)
        hangs.accept()[0].close()
        with pytest.raises(BlockingIOError):
            hangs.accept()


# -- INSERT in other words


@pytest.mark.slow  # beside the refusals of what is written past the catalog
def test_what_spark_begins_no_transaction_for_is_refused_and_says_why(catalog, spark, two, called) -> None:
    """The active session is another, in which no catalog is set."""
    spark._jvm.SparkSession.setActiveSession(spark.newSession()._jsparkSession)
    first, second = two
    source = catalog.table(second).alias("s")
    merge = source.mergeInto(first, F.expr(f"{first}.id = s.id")).whenMatched().delete().whenNotMatched().insertAll()
    if is_before(spark, "4.2"):  # each statement has one of ours there
        merge.merge()
        assert (sorted(row.id for row in catalog.table(first).collect()), called) == ([1, 11], ["begin", "commit"])
        return
    with pytest.raises(PySparkException, match=f"{first} needs a transaction.* by spark.sql, or set the catalog where"):
        merge.merge()
    assert (sorted(row.id for row in catalog.table(first).collect()), called) == ([1], [])


def test_insert_by_name_and_replace(catalog, db, called) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (id INT, note STRING) PARTITIONED BY (k INT) {_ACID}")
    catalog.sql(f"INSERT INTO {name} BY NAME SELECT 1 AS k, 'a' AS note, 1 AS id UNION ALL SELECT 2, 'b', 2 UNION ALL SELECT 3, 'c', 3")

    def left(statement):
        called.clear()
        catalog.sql(statement.format(t=name))
        assert called == ["begin", "commit"]
        return sorted(map(tuple, catalog.table(name).collect()))

    assert left("INSERT OVERWRITE {t} BY NAME SELECT 3 AS k, 'z' AS note, 9 AS id") == [(1, "a", 1), (2, "b", 2), (9, "z", 3)]
    assert left("INSERT INTO {t} REPLACE WHERE k = 2 SELECT 20, 'y', 2") == [(1, "a", 1), (9, "z", 3), (20, "y", 2)]
    assert left("INSERT INTO {t} REPLACE WHERE k = 2 SELECT 20, 'y', 2 WHERE false") == [(1, "a", 1), (9, "z", 3)]
    with pytest.raises(PySparkException, match=r"are of k = 3, and only PARTITION \(k = 1\) is overwritten"):
        catalog.sql(f"INSERT INTO {name} REPLACE WHERE k = 1 SELECT 20, 'y', 3")
    for condition in ("id = 1", "k > 1", "k = 1 OR k = 2"):
        with pytest.raises(PySparkException, match=r"only partitions can be overwritten .* REPLACE WHERE key = value"):
            catalog.sql(f"INSERT INTO {name} REPLACE WHERE {condition} SELECT 20, 'y', 1")
    with pytest.raises(PySparkException, match=r"does not support INSERT INTO ... REPLACE ON/USING|PARSE_SYNTAX_ERROR"):
        catalog.sql(f"INSERT INTO {name} REPLACE USING (k) SELECT 20, 'y', 1")
    assert sorted(map(tuple, catalog.table(name).collect())) == [(1, "a", 1), (9, "z", 3)]


def test_a_condition_replaces_all_that_meets_it(catalog, db) -> None:
    """Also partitions that get no new rows, unlike INSERT OVERWRITE: to Spark both are the same plan."""
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (day STRING, k INT) {_ACID}")
    new = catalog.sql("SELECT 10 AS id, 'mon' AS day, 1 AS k")

    def left(replace):
        catalog.sql(f"INSERT OVERWRITE {name} WITH ('partitionOverwriteMode' = 'static') VALUES (1, 'mon', 1), (2, 'tue', 1), (3, 'mon', 2), (4, NULL, 1)")
        replace() if callable(replace) else catalog.sql(replace)
        return sorted(map(tuple, catalog.table(name).collect()), key=repr)

    for statement in (f"INSERT INTO {name} REPLACE WHERE k = 1 SELECT 10, 'mon', 1", lambda: new.writeTo(name).overwrite(F.col("k") == 1)):
        assert left(statement) == [(10, "mon", 1), (3, "mon", 2)]
    assert left(f"WITH w AS (SELECT 10 AS id) INSERT INTO {name} WITH ('mine' = 'x') REPLACE WHERE k = 1 SELECT id, 'mon', 1 FROM w") == [
        (10, "mon", 1), (3, "mon", 2)]
    assert left(lambda: catalog.sql("SELECT 10 AS id, CAST(NULL AS STRING) AS day, 2 AS k").writeTo(name).option("mine", "x").overwrite(
        F.col("day").isNull())) == [(1, "mon", 1), (10, None, 2), (2, "tue", 1), (3, "mon", 2)]
    assert left(f"INSERT INTO {name} REPLACE WHERE day IS NULL SELECT 5, NULL, 5") == [(1, "mon", 1), (2, "tue", 1), (3, "mon", 2), (5, None, 5)]
    for statement in (f"INSERT INTO {name} REPLACE WHERE true SELECT 10, 'mon', 1", lambda: new.writeTo(name).overwrite(F.lit(True))):
        assert left(statement) == [(10, "mon", 1)]
    assert left(f"INSERT OVERWRITE {name} SELECT 10, 'mon', 1") == [(10, "mon", 1), (2, "tue", 1), (3, "mon", 2), (4, None, 1)]
    assert left(f"INSERT OVERWRITE {name} PARTITION (day, k = 1) SELECT 10, 'mon'") == [(10, "mon", 1), (2, "tue", 1), (3, "mon", 2), (4, None, 1)]


def test_analyze_table_is_the_procedure(catalog, db, client, two) -> None:
    a, _ = two
    catalog.sql(f"INSERT INTO {a} VALUES (2), (3)")
    assert catalog.sql(f"ANALYZE TABLE {a} COMPUTE STATISTICS").first().rows == 3
    assert client.get_table(db, "a").parameters["numRows"] == "3"
    catalog.sql(f"INSERT INTO {a} VALUES (4)")
    assert catalog.sql(f"ANALYZE TABLE {a} COMPUTE STATISTICS NOSCAN").first().rows == 4
    for more in ("FOR COLUMNS ID", "FOR ALL COLUMNS"):
        catalog.sql(f"ANALYZE TABLE {a} COMPUTE STATISTICS {more}")
    [known] = client.get_table_statistics_req(client.types.TableStatsRequest(db, "a", ["id"])).tableStats
    assert (known.statsData.longStats.lowValue, known.statsData.longStats.highValue, known.statsData.longStats.numDVs) == (1, 4, 4)
    with pytest.raises(PySparkException, match="has no column nothing"):
        catalog.sql(f"ANALYZE TABLE {a} COMPUTE STATISTICS FOR COLUMNS nothing")
    catalog.sql(f"CREATE TABLE {db}.plain USING parquet AS SELECT 1 AS id")
    catalog.sql(f"ANALYZE TABLE {db}.plain COMPUTE STATISTICS FOR ALL COLUMNS")
