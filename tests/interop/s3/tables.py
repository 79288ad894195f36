"""ACID tables whose warehouse is on S3: every kind of statement, compaction, cleaning, drivers that die; and what is there."""

from contextlib import suppress

import pytest

from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table
from metastore.streaming import Json, connect
from tests.acceptance.tables.story import Story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

KINDS = {"full": "'transactional'='true'", "insert-only": "'transactional'='true', 'transactional_properties'='insert_only'"}
KEYS = ["a b", "x/ü%"]


@pytest.fixture
def create(acid_session, db, store):
    """``create(kind, is_partitioned)``: (name, prefix of its keys)."""
    def created(kind="full", is_partitioned=False):
        partitions = "PARTITIONED BY (p STRING)" if is_partitioned else ""
        acid_session.sql(f"CREATE TABLE {db}.t (id INT, name STRING) {partitions} STORED AS ORC TBLPROPERTIES ({KINDS[kind]})")
        return f"{db}.t", f"warehouse/{db}.db/t/"
    return created


def rows(session, name):
    return sorted((tuple(row) for row in session.table(name).collect()), key=repr)


def directories(store, prefix):
    """ACID directories below the table, by what lies in them."""
    return sorted({key.removeprefix(prefix).rpartition("/")[0] for key in store.keys(prefix)})


@pytest.mark.parametrize(("kind", "is_partitioned"), [("full", True), ("insert-only", False)])
def test_a_table_s_life(acid_session, db, store, create, compacting, kind, is_partitioned):
    name, prefix = create(kind, is_partitioned)
    expected = []

    def values(numbers):
        return [(number, f"n{number}", *([KEYS[number % 2]] if is_partitioned else [])) for number in numbers]

    def insert(numbers):
        columns = "id INT, name STRING" + (", p STRING" if is_partitioned else "")
        assert acid_session.insert(name, acid_session.spark.createDataFrame(values(numbers), columns)) == len(numbers)

    def check():
        assert rows(acid_session, name) == sorted(expected, key=repr)
        assert all("delta_" in one or "base_" in one for one in directories(store, prefix)), "nothing else stays"
        assert store.uploads(prefix) == []
        assert [one for one in check_table(acid_session.client, Files(), table_name(db, "t")) if not one.finding.is_unneeded] == []

    for start in (0, 15):
        insert(range(start, start + 15))
    expected += values(range(30))
    check()

    before = store.keys(prefix)
    with suppress(ZeroDivisionError), acid_session.transaction():
        insert([98, 99])
        assert len(rows(acid_session, name)) == 32, "its own rows"
        raise ZeroDivisionError
    assert store.keys(prefix) == before, "an abort leaves nothing"
    check()

    if kind == "full":
        assert acid_session.update(name, {"name": "concat(name, '!')"}, "id % 3 = 0") == 10
        expected = [(row[0], f"{row[1]}!", *row[2:]) if row[0] % 3 == 0 else row for row in expected]
        assert acid_session.delete(name, "id >= 25") == 5
        expected = [row for row in expected if row[0] < 25]
        source = acid_session.spark.createDataFrame([(1, "m"), (2, "m"), (40, "m"), (41, "m")], "id INT, name STRING")
        value = f", '{KEYS[0]}'" if is_partitioned else ""
        assert acid_session.merge(name, source, "t.id = s.id", [
            "WHEN MATCHED AND s.id = 2 THEN DELETE", "WHEN MATCHED THEN UPDATE SET name = s.name",
            f"WHEN NOT MATCHED THEN INSERT (id, name{', p' if value else ''}) VALUES (s.id, s.name{value})"]) == 4
        expected = [(1, "m", *row[2:]) if row[0] == 1 else row for row in expected if row[0] != 2]
        expected += [(number, "m", *KEYS[:1 if value else 0]) for number in (40, 41)]
        check()

    partitions = acid_session.client.get_partition_names(db, "t", -1) if is_partitioned else [""]
    for kind_of_compaction in ("minor", "major"):
        for partition in partitions:
            assert compacting.compact(db, "t", kind_of_compaction, partition) == "compacted", compacting.report
        check()
        compacting.clean()
        check()
        insert([50])
        expected += values([50])
    assert len([one for one in directories(store, prefix) if "base_" in one]) == len(partitions)
    check()

    acid_session.sql(f"INSERT OVERWRITE TABLE {name} {'PARTITION (p)' if is_partitioned else ''} SELECT * FROM {name} WHERE id < 5")
    expected = [row for row in expected if row[0] < 5]
    check()
    acid_session.sql(f"TRUNCATE TABLE {name}")
    expected = []
    check()
    insert([7])
    expected = values([7])
    acid_session.sql(f"ALTER TABLE {name} RENAME TO {db}.moved")
    assert rows(acid_session, f"{db}.moved") == expected
    assert store.keys(prefix) == []
    acid_session.sql(f"DROP TABLE {db}.moved")
    assert store.keys(f"warehouse/{db}.db/") == []


@pytest.mark.parametrize("seed", [1, 2])
def test_a_story(seed, acid_session, db, compacting):
    Story(seed, acid_session, db, compacting).tell(8)


def test_rows_come_without_spark(acid_session, create, lakehouse):
    name, _ = create(is_partitioned=True)
    with connect(name, uri=lakehouse.uri, records=Json()) as connection:
        for number in range(3):
            with connection.transaction():
                connection.write([f'{{"id": {number}, "name": "n", "p": "x/y"}}'])
    assert rows(acid_session, name) == [(number, "n", "x/y") for number in range(3)]
    assert acid_session.delete(name, "id = 1") == 1
    assert rows(acid_session, name) == [(0, "n", "x/y"), (2, "n", "x/y")]


def test_a_plain_table_is_made_transactional(acid_session, db, store):
    name = f"{db}.plain"
    acid_session.spark.sql(f"CREATE TABLE {name} (id INT) STORED AS ORC")
    acid_session.spark.sql(f"INSERT INTO {name} SELECT id FROM range(0, 6, 1, 3)")
    acid_session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('transactional'='true')")
    assert acid_session.delete(name, "id % 2 = 0") == 3
    assert rows(acid_session, name) == [(1,), (3,), (5,)]
    assert {key.rpartition("/")[2] for key in store.keys(f"warehouse/{db}.db/plain/0")} == {"000000_0", "000001_0", "000002_0"}
