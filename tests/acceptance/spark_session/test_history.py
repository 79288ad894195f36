"""What was, and who changed it: ROW__ID, past snapshots, changes between two write ids, columns that came later."""

from contextlib import closing
from datetime import UTC, timedelta
from pathlib import Path

import psycopg2
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from metastore.acid.state import NotEnoughHistoryError
from metastore.errors import InvalidOperationError
from metastore.housekeeping.service import PurgeService
from metastore.ids import table_name
from metastore.loops.reaper import Reaper
from metastore.spark.check.table_check import check_table
from tests.support.nanoseconds import insert_nanoseconds

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_INSERT_ONLY = "STORED AS {} TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


def rows(frame):
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def location(session, name):
    return Path(session.client.get_table(*name.split(".")).sd.location.removeprefix("file:").replace("///", "/"))


@pytest.fixture
def flat(acid_session, db):
    """Create a table: write id 1 inserts 1 and 2, 2 changes 2 and inserts 3, 3 deletes 1."""
    name = f"{db}.flat"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) {_ACID}")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    acid_session.sql(f"MERGE INTO {name} t USING (SELECT 2 AS id UNION ALL SELECT 3) s ON t.id = s.id "
                     "WHEN MATCHED THEN UPDATE SET name = 'B' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'c')")
    acid_session.delete(name, "id = 1")
    return name


def test_row_ids_and_changes(acid_session, flat, db):
    first = acid_session.sql(f"SELECT ROW__ID.writeid, * FROM {flat} ORDER BY id").collect()
    assert [tuple(row) for row in first] == [(2, 2, "B"), (2, 3, "c")]
    [one] = acid_session.table(flat, row_id=True).where("id = 3").select("ROW__ID").collect()
    assert acid_session.table(flat).columns == ["id", "name"]
    assert rows(acid_session.changes(flat, 0).drop("ROW__ID")) == [
        ("delete", 2, 2, "b"), ("delete", 3, 1, "a"),
        ("insert", 1, 1, "a"), ("insert", 1, 2, "b"), ("insert", 2, 2, "B"), ("insert", 2, 3, "c")]
    assert rows(acid_session.changes(flat, 1, 2).drop("ROW__ID")) == [
        ("delete", 2, 2, "b"), ("insert", 2, 2, "B"), ("insert", 2, 3, "c")]
    assert acid_session.changes(flat, 3).count() == 0
    ids = acid_session.changes(flat, 0).where("id = 1").select("ROW__ID").distinct().collect()
    assert len(ids) == 1, "what is deleted is named as it was inserted"
    assert acid_session.sql(f"DELETE FROM {flat} WHERE ROW__ID.rowid = {one[0]['rowid']} AND ROW__ID.writeid = 2").first()[0] == 1
    assert check_table(acid_session.client, acid_session.files, table_name(*flat.split("."))) == []
    with pytest.raises(InvalidOperationError, match="one write id up to another"):
        acid_session.changes(flat, 3, 2)
    with pytest.raises(InvalidOperationError, match="write ids up to 4"):
        acid_session.changes(flat, 3, 5)


def test_the_past_is_read_while_its_files_are_there(acid_session, flat, lakehouse):
    overwritten = rows(acid_session.table(flat, as_of_write_id=2))
    acid_session.sql(f"INSERT OVERWRITE TABLE {flat} VALUES (9, 'z')")
    assert overwritten == [(1, "a"), (2, "B"), (3, "c")]
    assert rows(acid_session.table(flat, as_of_write_id=2)) == overwritten
    for path in location(acid_session, flat).glob("del*"):
        path.rename(path.with_name(f".{path.name}"))
    with pytest.raises(NotEnoughHistoryError, match="overwritten by base_0000004, and its files are gone"):
        acid_session.table(flat, as_of_write_id=2)
    with pytest.raises(NotEnoughHistoryError, match="overwritten up to write id 4"):
        acid_session.changes(flat, 2)
    assert rows(acid_session.table(flat, as_of_write_id=4)) == [(9, "z")]
    assert acid_session.changes(flat, 4).count() == 0


def test_columns_that_were_added_widened_moved_and_renamed(acid_session, db, spark):
    name = f"{db}.grown"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING, old INT) PARTITIONED BY (p INT) {_ACID}")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'a', 7, 1), (2, 'b', 7, 2)")
    found = acid_session.client.get_table(*name.split("."))
    fields = acid_session.client.types.FieldSchema
    found.sd.cols = [fields("old", "bigint"), fields("label", "string"), fields("id", "bigint"), fields("more", "array<int>")]
    acid_session.client.alter_table(*name.split("."), found)

    acid_session.sql(f"INSERT INTO {name} VALUES ({9 * 10**12}, 'c', 3, array(1), 1)")

    assert rows(acid_session.table(name)) == [(7, None, 1, None, 1), (7, None, 2, None, 2), (9 * 10**12, "c", 3, [1], 1)]
    assert acid_session.update(name, {"old": "old + 1", "label": "'new'"}, "id < 3") == 2
    assert rows(acid_session.table(name).select("old", "label", "p")) == [(8, "new", 1), (8, "new", 2), (9 * 10**12, "c", 1)]
    assert acid_session.table(name).where("label IS NULL").count() == 0


def test_columns_are_altered_by_sql(acid_session, db, spark):
    name, sql = f"{db}.altered", acid_session.sql
    sql(f"CREATE TABLE {name} (id INT, d DECIMAL(5,2), f FLOAT, s VARCHAR(3), gone INT) PARTITIONED BY (p INT) {_ACID}")
    sql(f"ALTER TABLE {name} RENAME COLUMN f TO g")
    sql(f"INSERT INTO {name} VALUES (1, 1.25, 0.5, 'abc', 7, 1)")
    for change in ("CHANGE COLUMN id id BIGINT COMMENT 'wide'", "CHANGE d d DECIMAL(10,4)", "ALTER COLUMN g TYPE DOUBLE",
                   "CHANGE s s STRING", "DROP COLUMN gone", "CHANGE s s STRING AFTER d"):
        sql(f"ALTER TABLE {name} {change}")
    sql(f"INSERT INTO {name} VALUES ({2**40}, 123456.7891, 'longer', 1e300, 1)")

    assert acid_session.table(name).dtypes == [("id", "bigint"), ("d", "decimal(10,4)"), ("s", "string"), ("g", "double"), ("p", "int")]
    assert [(row[0], str(row[1]), *row[2:]) for row in rows(acid_session.table(name))] == [
        (1, "1.2500", "abc", 0.5, 1), (2**40, "123456.7891", "longer", 1e300, 1)]
    assert sql(f"DESCRIBE {name}").first()["comment"] == "wide"
    [partition] = acid_session.client.get_partitions(db, "altered", -1)
    assert [(one.name, one.type) for one in partition.sd.cols][:2] == [("id", "bigint"), ("d", "decimal(10,4)")]
    for change, reason in [("RENAME COLUMN s TO t", "would be NULL in t"), ("CHANGE id id INT", "NOT_SUPPORTED_CHANGE_COLUMN"),
                           ("REPLACE COLUMNS (p INT)", "partition key|same name"), ("DROP COLUMN nothing", "nothing")]:
        with pytest.raises((InvalidOperationError, AnalysisException), match=reason):
            sql(f"ALTER TABLE {name} {change}")


@pytest.mark.parametrize("stored", [_ACID, _INSERT_ONLY.format("PARQUET"), pytest.param(_INSERT_ONLY.format("ORC"), marks=pytest.mark.slow)],
                         ids=["full ACID", "Parquet", "ORC"])
def test_a_dropped_name_comes_back_only_without_its_old_values(acid_session, db, stored):
    name, sql = f"{db}.t", acid_session.sql
    sql(f"CREATE TABLE {name} (id INT, gone INT) PARTITIONED BY (p INT) {stored}")
    sql(f"INSERT INTO {name} VALUES (1, 7, 1)")
    sql(f"ALTER TABLE {name} DROP COLUMN gone")
    for change in ("ADD COLUMNS (gone INT)", "ADD COLUMN Gone STRING", "REPLACE COLUMNS (id INT, gone INT)"):
        with pytest.raises(InvalidOperationError, match=r"delta_0000001_0000001_0000/\S+ still holds values of a column gone"):
            sql(f"ALTER TABLE {name} {change}")
    sql(f"ALTER TABLE {name} ADD COLUMNS (fresh STRING COMMENT 'later')")
    sql(f"INSERT INTO {name} VALUES (2, 'x', 1)")
    assert rows(acid_session.table(name)) == [(1, None, 1), (2, "x", 1)]
    assert sql(f"DESCRIBE {name}").collect()[1].comment == "later"
    with pytest.raises(InvalidOperationError, match="cannot be added with NOT NULL"):
        sql(f"ALTER TABLE {name} ADD COLUMNS (more INT NOT NULL)")


def test_columns_of_a_plain_table_are_sparks_to_add(acid_session, db, spark):
    acid_session.sql(f"CREATE TABLE {db}.plain (id INT) STORED AS ORC")
    acid_session.sql(f"ALTER TABLE {db}.plain ADD COLUMNS (more INT)")
    assert spark.table(f"{db}.plain").columns == ["id", "more"]


def test_nanoseconds_are_not_cut_by_an_update(acid_session, db):
    name = f"{db}.fine"
    acid_session.sql(f"CREATE TABLE {name} (id INT, at TIMESTAMP, note STRING) {_ACID}")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP'2020-01-01 00:00:00.123456', 'x')")
    insert_nanoseconds(acid_session, name)

    assert acid_session.table(name).select(F.max("at").cast("string")).first()[0] == "2020-01-01 00:00:00.123456"
    with pytest.raises(InvalidOperationError, match="holds timestamps with nanoseconds"):
        acid_session.update(name, {"note": "'z'"})
    with pytest.raises(InvalidOperationError, match="nanoseconds"):
        acid_session.sql(f"MERGE INTO {name} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'z'")
    assert acid_session.update(name, {"at": "NULL"}, "id = 2") == 1
    assert acid_session.delete(name, "id = 2") == 1


def test_plain_tables_made_from_transactional_ones(acid_session, flat, db, spark):
    acid_session.sql(f"CREATE TABLE {db}.copy USING parquet AS SELECT name FROM {flat} WHERE id > 1")
    acid_session.sql(f"INSERT INTO {db}.copy SELECT concat(name, '!') FROM {flat}")
    acid_session.sql(f"INSERT INTO {db}.copy VALUES ('plain')")
    assert sorted(row[0] for row in spark.table(f"{db}.copy").collect()) == ["B", "B!", "c", "c!", "plain"]
    acid_session.sql(f"CREATE OR REPLACE TEMPORARY VIEW one AS SELECT id AS a FROM {flat}")
    assert rows(acid_session.sql("SELECT * FROM one")) == [(2,), (3,)]
    spark.catalog.dropTempView("one")


def database_time(lakehouse):
    """Return the metastore's time, to the millisecond; the next call returns a later one."""
    with closing(psycopg2.connect(lakehouse.database_url)) as session, session.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.002)")
        cursor.execute("SELECT date_trunc('milliseconds', metastore_now() - interval '1 ms')")
        return cursor.fetchone()[0]


def test_tables_as_of_an_instant(acid_session, db, lakehouse):
    name = f"{db}.timed"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (p INT) {_ACID}")
    before = database_time(lakehouse)
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 2)")
    first = database_time(lakehouse)
    with acid_session.transaction():
        acid_session.update(name, {"name": "'B'"}, "id = 2")
        inside = database_time(lakehouse)
    second = database_time(lakehouse)
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p = 1) SELECT 9, 'z'")

    Reaper(PurgeService(lakehouse.app.database, lakehouse.app.settings.txns)).tick()
    assert rows(acid_session.table(name, as_of_timestamp=first)) == [(1, "a", 1), (2, "b", 2)]
    assert rows(acid_session.table(name, as_of_timestamp=inside)) == [(1, "a", 1), (2, "b", 2)]
    assert rows(acid_session.table(name, as_of_timestamp=second)) == [(1, "a", 1), (2, "B", 2)]
    text = f"{second.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
    assert rows(acid_session.table(name, as_of_timestamp=text)) == [(1, "a", 1), (2, "B", 2)]
    assert rows(acid_session.table(name)) == [(2, "B", 2), (9, "z", 1)]
    for wrong, reason in ((before, "not on record"), (second + timedelta(days=1), "still to come"), ("yesterday", "INVALID_TIME_TRAVEL")):
        with pytest.raises((InvalidOperationError, AnalysisException), match=reason):
            acid_session.table(name, as_of_timestamp=wrong)
    with pytest.raises(InvalidOperationError, match="or as of a timestamp"):
        acid_session.table(name, as_of_timestamp=second, as_of_write_id=1)


def test_the_past_is_refused_where_the_cleaner_may_have_been(acid_session, flat, lakehouse):
    """Half of what was replaced is gone: nothing in the listing tells."""
    acid_session.sql(f"INSERT OVERWRITE TABLE {flat} VALUES (9, 'z')")
    assert len(rows(acid_session.table(flat, as_of_write_id=2))) == 3
    db, table = flat.split(".")
    with closing(psycopg2.connect(lakehouse.database_url)) as session, session, session.cursor() as cursor:
        cursor.execute("""INSERT INTO compaction_queue (catalog, db, "table", partition, state, type, highest_write_id, enqueued_at)
                          VALUES ('hive', %s, %s, '', 'ready_for_cleaning', 'minor', 4, metastore_now())""", (db, table))
    assert len(rows(acid_session.table(flat, as_of_write_id=2))) == 3, "the Cleaner has yet to begin"
    with closing(psycopg2.connect(lakehouse.database_url)) as session, session, session.cursor() as cursor:
        cursor.execute('UPDATE compaction_queue SET cleaner_started_at = metastore_now() WHERE db = %s AND "table" = %s', (db, table))
    with pytest.raises(NotEnoughHistoryError, match=r"compacted or overwritten since then \(base_0000004\)"):
        acid_session.table(flat, as_of_write_id=2)
    assert rows(acid_session.table(flat, as_of_write_id=4)) == [(9, "z")]
