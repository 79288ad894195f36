"""Spark's own SQL on S3: no statement copies anything, and whatever fails leaves nothing that anybody sees."""

from collections import Counter

import pytest
from pyspark.errors import PySparkException

from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table
from tests.interop.s3.in_place import COMPLETE, COPIES, DELTA, PART, Refusing
from tests.interop.s3.tables import KINDS, rows
from tests.support.json_stream import JsonStream

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@pytest.fixture
def create(catalog, db):
    """``create(kind, is_partitioned, stored_as)``: (name, prefix of its keys)."""
    def created(kind="full", is_partitioned=True, stored_as="ORC"):
        partitions = "PARTITIONED BY (p STRING)" if is_partitioned else ""
        catalog.sql(f"CREATE TABLE {db}.t (id INT, name STRING) {partitions} STORED AS {stored_as} TBLPROPERTIES ({KINDS[kind]})")
        return f"{db}.t", f"warehouse/{db}.db/t/"
    return created


@pytest.fixture
def run(catalog, store, db):
    """Run a statement, which must copy nothing; returns how often the store was asked for what."""
    def ran(statement):
        with store.watched() as seen:
            catalog.sql(statement)
        counted = Counter(request.kind for request in seen)
        assert not COPIES & counted.keys(), statement
        assert counted["CreateMultipartUpload"] == counted[COMPLETE]
        assert not [request.key for request in seen if ".acid_stage" in request.key]
        return counted
    return ran


def insert(name, start, end):
    return (f"INSERT INTO {name} SELECT CAST(id AS INT), concat('n', id), IF(id % 2 = 0, 'a b', 'x/ü%#') "
            f"FROM range({start}, {end}, 1, 2)")


def test_no_statement_copies(catalog, acid_session, db, store, create, run):
    name, prefix = create()
    print({"INSERT": run(insert(name, 0, 20)).total()})
    print({"UPDATE": run(f"UPDATE {name} SET name = 'u' WHERE id < 5").total()})
    assert run(f"DELETE FROM {name} WHERE id = 19")[COMPLETE] == 1
    print({"MERGE": run(f"""MERGE INTO {name} t USING (SELECT CAST(id AS INT) AS id, 'new' AS p FROM range(17, 21)) s ON t.id = s.id
            WHEN MATCHED AND s.id = 17 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'm'
            WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, 'i', s.p)""").total()})
    expected = [(number, "u" if number < 5 else "m" if number == 18 else f"n{number}", "x/ü%#" if number % 2 else "a b")
                for number in range(19) if number != 17] + [(number, "i", "new") for number in (19, 20)]
    assert rows(catalog, name) == rows(acid_session, name) == sorted(expected, key=repr)
    assert check_table(acid_session.client, Files(), table_name(db, "t")) == []

    run(f"INSERT OVERWRITE {name} PARTITION (p = 'a b') SELECT id, 'o' FROM {name} WHERE id = 2")
    run(f"INSERT OVERWRITE {name} SELECT id, name, p FROM {name} WHERE id = 3")
    assert rows(catalog, name) == sorted([(2, "o", "a b"), (3, "u", "x/ü%#"), (19, "i", "new"), (20, "i", "new")], key=repr)
    run(f"INSERT OVERWRITE {name} PARTITION (p = 'new') SELECT id, name FROM {name} WHERE id < 0")
    run(f"TRUNCATE TABLE {name} PARTITION (p = 'a b')")
    assert rows(catalog, name) == rows(acid_session, name) == [(3, "u", "x/ü%#")]
    run(f"TRUNCATE TABLE {name}")
    run(insert(name, 0, 2))
    assert len(rows(catalog, name)) == 2
    assert store.uploads(prefix) == []
    assert all("delta_" in key or "base_" in key for key in store.keys(prefix))


@pytest.mark.parametrize("stored_as", ["ORC", "PARQUET", "TEXTFILE"])
def test_insert_only_tables(catalog, acid_session, store, create, run, stored_as):
    name, prefix = create("insert-only", stored_as=stored_as)
    run(insert(name, 0, 6))
    run(f"INSERT OVERWRITE {name} SELECT id, 'o', p FROM {name} WHERE id % 2 = 0")
    assert rows(catalog, name) == rows(acid_session, name) == sorted(
        [(number, f"n{number}" if number % 2 else "o", "x/ü%#" if number % 2 else "a b") for number in range(6)], key=repr)
    run(f"TRUNCATE TABLE {name} PARTITION (p = 'a b')")
    assert [row[0] for row in rows(catalog, name)] == [1, 3, 5]
    assert {key.rpartition("/")[2] for key in store.keys(prefix)} == {"000000_0", "000001_0"}
    assert store.uploads(prefix) == []


def test_a_stream(catalog, db, store, tmp_path):
    name, stream = f"{db}.events", JsonStream(catalog, tmp_path)
    catalog.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (part INT) STORED AS ORC "
                "TBLPROPERTIES ('transactional'='true')")
    with store.watched() as seen:
        for one in range(2):
            stream.add(one)
            stream.to_table(name)
    assert not COPIES & {request.kind for request in seen}
    assert COMPLETE in {request.kind for request in seen}
    assert rows(catalog, name) == [(0, "n0", 0), (1, "n1", 1)]
    assert store.uploads(f"warehouse/{db}.db/") == []


def test_an_attempt_that_fails_takes_its_uploads_with_it(catalog, store, create):
    name, prefix = create()
    with store.answering(refusing := Refusing(PART, {2})), store.watched() as seen:
        catalog.sql(insert(name, 0, 20).replace("1, 2)", "1, 1)"))
    kinds = Counter(request.kind for request in seen)
    assert refusing.refused == 1
    assert (kinds["CreateMultipartUpload"], kinds["AbortMultipartUpload"], kinds[COMPLETE]) == (4, 2, 2)
    assert len(rows(catalog, name)) == 20
    assert store.uploads(prefix) == []


@pytest.mark.parametrize("refused", [PART, COMPLETE])
def test_a_statement_that_fails_leaves_nothing(catalog, store, create, refused):
    """Tasks that fail for good while others are done; and a publication that stops in the middle."""
    name, prefix = create()
    catalog.sql(insert(name, 0, 4))
    before, is_bad = store.keys(prefix), Refusing(refused)

    def answer(request):
        return is_bad(request) if "/p=x" in request.key and request.key.endswith("bucket_00001") else None

    with store.answering(answer), pytest.raises(Exception, match="403"):
        catalog.sql(insert(name, 4, 20))
    assert is_bad.refused > 0
    assert (store.keys(prefix), store.uploads(prefix)) == (before, [])
    assert len(rows(catalog, name)) == 4


def test_a_row_that_breaks_a_rule_leaves_no_upload(catalog, acid_session, db, store):
    name, prefix = f"{db}.t", f"warehouse/{db}.db/t/"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING, CONSTRAINT few CHECK (id < 10)) "
                     "STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    with store.watched() as seen, pytest.raises(PySparkException, match="few"):
        catalog.sql(f"INSERT INTO {name} SELECT CAST(id AS INT), 'n' FROM range(20)")
    assert {"CreateMultipartUpload", "AbortMultipartUpload"} <= {request.kind for request in seen}
    assert (store.keys(prefix), store.uploads(prefix)) == ([], [])


def test_what_is_rolled_back_is_removed(catalog, store, create):
    name, prefix = create(is_partitioned=False)
    catalog.sql("CALL system.begin()")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'n')")
    assert [key.removeprefix(prefix) for key in store.keys(prefix)] == [f"{DELTA}/_orc_acid_version", f"{DELTA}/bucket_00000"]
    catalog.sql("CALL system.rollback()")
    assert store.keys(prefix) == []


def test_partitions_that_lie_elsewhere_are_written_by_way_of_staging(catalog, acid_session, db, store, create):
    name, prefix = create()
    acid_session.sql(f"ALTER TABLE {name} ADD PARTITION (p = 'a b') LOCATION 's3a://{store.bucket}/elsewhere/{db}'")
    with store.watched() as seen:
        catalog.sql(insert(name, 0, 10))
    assert "CopyObject" in {request.kind for request in seen}
    catalog.sql(f"UPDATE {name} SET name = 'u' WHERE id < 4")
    assert rows(catalog, name) == sorted(
        [(one, "u" if one < 4 else f"n{one}", "x/ü%#" if one % 2 else "a b") for one in range(10)], key=repr)
    assert [key for key in store.keys(prefix) if "p=a" in key] == []
    assert len(store.keys(f"elsewhere/{db}")) > 2
