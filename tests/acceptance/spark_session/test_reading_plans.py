"""How a snapshot is read: which files and row groups are opened, how deleted rows are left out; right either way."""

from pathlib import Path

import pytest

from metastore.acid_tables import deleted
from metastore.spark.read import reader

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_PARTITIONS = 40


def _nodes(frame) -> list:
    """The physical plan of a frame that was executed."""
    found, left = [], [frame._jdf.queryExecution().executedPlan()]
    while left:
        node = left.pop()
        found.append(node)
        name = node.nodeName()
        inside = [node.executedPlan()] if name == "AdaptiveSparkPlan" else [node.plan()] if name.endswith("QueryStage") else []
        children = node.children()
        left += inside + [children.apply(place) for place in range(children.size())]
    return found


def _files_read(frame) -> int:
    return sum(node.metrics().apply("numFiles").value() for node in _nodes(frame) if node.nodeName().startswith("Scan"))


@pytest.fixture
def partitioned(acid_session, spark, db) -> str:
    """Two rows in each of many partitions, with the same ROW__IDs in all, one partition the default one."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT) PARTITIONED BY (p INT, q STRING) {_ACID}")
    rows = spark.range(_PARTITIONS * 2).selectExpr(
        "id", f"CAST(id % {_PARTITIONS} AS INT) AS p", f"IF(id % {_PARTITIONS} = 7, NULL, 'it''s/' || (id % 2)) AS q")
    acid_session.insert(name, rows.coalesce(1))
    return name


def test_a_condition_on_partition_keys_leaves_out_files_however_many_partitions_there_are(acid_session, partitioned) -> None:
    whole = acid_session.table(partitioned)
    assert len(whole.collect()) == _PARTITIONS * 2
    for condition, files, ids in (("p = 3", 1, [3, 43]), ("q IS NULL", 1, [7, 47]), ("p < 4 AND q = 'it''s/1'", 2, [1, 3, 41, 43])):
        frame = acid_session.table(partitioned).where(condition).select("id")

        assert sorted(row.id for row in frame.collect()) == ids
        assert _files_read(frame) * _PARTITIONS == _files_read(whole) * files


@pytest.mark.parametrize(("words", "one_by_one", "join"), [
    (1_000_000, 1_000_000, None), (0, 1_000_000, "BroadcastHashJoin"), (0, 0, "SortMergeJoin")])
def test_deletes_hide_the_same_rows_in_every_way(acid_session, partitioned, monkeypatch, words, one_by_one, join) -> None:
    monkeypatch.setattr(deleted, "MAX_WORDS", words)
    monkeypatch.setattr(reader, "BROADCAST_LIMIT", one_by_one)
    acid_session.sql(f"DELETE FROM {partitioned} WHERE p = 5 OR id IN (7, 48)")
    acid_session.sql(f"UPDATE {partitioned} SET id = id + 1000 WHERE id = 11")

    frame = acid_session.table(partitioned)

    expected = (set(range(_PARTITIONS * 2)) - {5, 45, 7, 48, 11}) | {1011}
    assert sorted(row.id for row in frame.select("id").collect()) == sorted(expected)
    frame.collect()
    assert {node.nodeName() for node in _nodes(frame) if "Join" in node.nodeName()} == ({join} if join else set())
    assert frame.where("p = 5").count() == 0


def _columns_read(frame) -> list[set[str]]:
    """Of each scan of a frame that was executed."""
    return [set(node.requiredSchema().fieldNames()) for node in _nodes(frame) if node.nodeName().startswith("Scan orc")]


@pytest.fixture
def wide(acid_session, spark, db) -> str:
    name = f"{db}.wide"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT, one STRING, other STRING) {_ACID}")
    acid_session.insert(name, spark.range(10).selectExpr("id", "'x' AS one", "'y' AS other"))
    return name


def test_nothing_of_an_event_is_read_but_what_the_query_needs(acid_session, wide) -> None:
    for columns in (["id"], ["id", "one", "other"]):
        frame = acid_session.table(wide).select(*columns)
        assert len(frame.collect()) == 10
        assert _columns_read(frame) == [set(columns)]
    count = acid_session.table(wide).groupBy().count()
    assert count.collect()[0][0] == 10
    assert _columns_read(count) == [set()]
    ids = acid_session.table(wide, row_id=True).select("ROW__ID.rowid")
    assert len(ids.collect()) == 10
    assert _columns_read(ids) == [{"__acid_bucket", "__acid_row_id"}]


@pytest.mark.parametrize(("words", "columns"), [(1_000_000, {"__acid_deleted"}), (0, {"__acid_write_id", "__acid_bucket", "__acid_row_id"})])
def test_only_the_columns_that_are_asked_for_are_read_beside_deletes(acid_session, wide, monkeypatch, words, columns) -> None:
    monkeypatch.setattr(deleted, "MAX_WORDS", words)
    acid_session.sql(f"DELETE FROM {wide} WHERE id = 3")

    frame = acid_session.table(wide).select("id")

    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert {"id", *columns} in _columns_read(frame)
    assert not {"one", "other"} & set().union(*_columns_read(frame))


def test_partitions_without_deletes_are_read_as_if_there_were_none(acid_session, partitioned) -> None:
    acid_session.sql(f"DELETE FROM {partitioned} WHERE id = 5")

    frame = acid_session.table(partitioned).select("id")

    assert len(frame.collect()) == _PARTITIONS * 2 - 1
    assert sorted(_columns_read(frame), key=len) == [{"id"}, {"id", "__acid_deleted"}]


@pytest.mark.parametrize("setting", ["spark.sql.orc.enableVectorizedReader", "spark.sql.codegen.wholeStage"])
def test_rows_are_the_same_where_spark_takes_no_batches(acid_session, spark, db, setting) -> None:
    name = f"{db}.nested"
    acid_session.sql(f"CREATE TABLE {name} (id INT, inside STRUCT<deep: ARRAY<STRING>, far: MAP<STRING, DECIMAL(9,2)>>) {_ACID}")
    acid_session.insert(name, spark.range(50).selectExpr(
        "CAST(id AS INT) AS id", "struct(array('a', CAST(id AS STRING)) AS deep, map('k', CAST(id / 4 AS DECIMAL(9,2))) AS far) AS inside"))
    acid_session.sql(f"DELETE FROM {name} WHERE id % 7 = 1")
    expected = sorted(map(str, acid_session.table(name, row_id=True).collect()))

    spark.conf.set(setting, "false")
    try:
        found = sorted(map(str, acid_session.table(name, row_id=True).collect()))
        deep = acid_session.table(name).where("inside.deep[1] = '14'").select("inside.far", "id").collect()
    finally:
        spark.conf.unset(setting)

    assert len(found) == 43
    assert found == expected
    assert [(row.id, str(row.far["k"])) for row in deep] == [(14, "3.50")]


def test_tables_with_the_same_columns_are_not_taken_for_each_other(acid_session, spark, db) -> None:
    """Spark runs equal parts of a plan once, and takes what is cached for an equal plan."""
    for table, first in (("a", 0), ("b", 5)):
        acid_session.sql(f"CREATE TABLE {db}.{table} (id BIGINT) {_ACID}")
        acid_session.insert(f"{db}.{table}", spark.range(first, first + 10))
    acid_session.sql(f"DELETE FROM {db}.a WHERE id = 7")
    acid_session.sql(f"DELETE FROM {db}.b WHERE id = 8")
    both = f"SELECT a.id AS a, b.id AS b FROM {db}.a FULL JOIN {db}.b ON a.id = b.id"

    for threshold in ("-1", "10MB"):
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        rows = acid_session.sql(both).collect()
        assert {row.a for row in rows} - {None} == set(range(10)) - {7}
        assert {row.b for row in rows} - {None} == set(range(5, 15)) - {8}
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    cached = acid_session.table(f"{db}.a").cache()
    try:
        assert cached.count() == 9
        assert {row.id for row in acid_session.table(f"{db}.b").collect()} == set(range(5, 15)) - {8}
        acid_session.sql(f"DELETE FROM {db}.a WHERE id = 9")
        assert acid_session.table(f"{db}.a").count() == 8
        assert acid_session.table(f"{db}.a", as_of_write_id=1).count() == 10
    finally:
        cached.unpersist()


def _rows_read(frame) -> int:
    return sum(node.metrics().apply("numOutputRows").value() for node in _nodes(frame) if node.nodeName().startswith("Scan"))


@pytest.mark.usefixtures("no_capability_check")  # Spark's own ADD COLUMNS does not look for old files
def test_conditions_on_columns_leave_out_row_groups(acid_session, spark, db) -> None:
    """Three row groups of 10,000 rows in one file, sorted by every column; one column came later."""
    name = f"{db}.groups"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT, note STRING, inside STRUCT<deep: INT>) {_ACID}")
    acid_session.insert(name, spark.range(0, 30_000, numPartitions=1).selectExpr(
        "id", "'n' || lpad(id, 5, '0') AS note", "struct(CAST(id AS INT) AS deep) AS inside"))
    acid_session.sql(f"DELETE FROM {name} WHERE id = 102")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (missing INT)")

    for condition, ids in (("id = 25000", [25_000]), ("id BETWEEN 100 AND 103 OR id = 105", [100, 101, 103, 105]),
                           ("id IN (7, 9)", [7, 9]), ("note = 'n29999'", [29_999]), ("NOT id > 1", [0, 1]),
                           ("inside.deep = 29998 AND note LIKE 'n2%'", [29_998]), ("id = 4 AND missing IS NULL", [4])):
        frame = acid_session.table(name).where(condition)

        assert sorted(row.id for row in frame.collect()) == ids
        assert (condition, _rows_read(frame)) == (condition, 10_000)


def test_columns_named_like_those_of_events_are_not_taken_for_them(acid_session, spark, db) -> None:
    """ORC would compare the user's columns with what is asked of the events, and leave out whole row groups."""
    name = f"{db}.namesakes"
    acid_session.sql(f"CREATE TABLE {name} (operation INT, originalTransaction BIGINT, bucket INT, rowId BIGINT, "
                     f"currentTransaction BIGINT, `row` INT) {_ACID}")
    acid_session.insert(name, spark.range(0, 20, numPartitions=1).selectExpr(
        "CAST(id + 5 AS INT) AS operation", "-id - 1 AS originalTransaction", "CAST(-id - 1 AS INT) AS bucket",
        "-id - 1 AS rowId", "id + 1000 AS currentTransaction", "CAST(NULL AS INT) AS `row`"))
    acid_session.sql(f"DELETE FROM {name} WHERE rowId = -3")
    acid_session.sql(f"UPDATE {name} SET bucket = 77 WHERE operation = 9")

    rows = acid_session.table(name).collect()

    assert sorted(row.operation for row in rows) == [one for one in range(5, 25) if one != 7]
    assert [row.rowid for row in rows if row.bucket == 77] == [-5]

    # Without the marker of ACID version 2 each event is asked for its operation.
    place = Path(acid_session.client.get_table(db, "namesakes").sd.location.removeprefix("file:").replace("///", "/"))
    for marker in place.glob("*/_orc_acid_version"):
        marker.unlink()
    assert sorted(acid_session.table(name).collect()) == sorted(rows)
    assert [row.rowid for row in acid_session.table(name).where("operation = 9").collect()] == [-5]


def test_no_join_where_nothing_is_deleted(acid_session, partitioned) -> None:
    frame = acid_session.table(partitioned)

    assert frame.count() == _PARTITIONS * 2
    assert not [node for node in _nodes(frame) if "Join" in node.nodeName()]


def test_row_ids_far_apart_are_told_from_each_other(acid_session, spark, db) -> None:
    """Bits of words of 64 row ids: the first, the last and neighbours of words. Farther ones: test_deleted_rows.py."""
    acid_session.sql(f"CREATE TABLE {db}.wide (id BIGINT) CLUSTERED BY (id) INTO 2 BUCKETS {_ACID}")
    acid_session.insert(f"{db}.wide", spark.range(0, 1000, numPartitions=3))
    gone = [0, 1, 63, 64, 65, 127, 128, 333, 334, 666, 999]
    acid_session.sql(f"DELETE FROM {db}.wide WHERE id IN ({', '.join(map(str, gone))})")
    expected = sorted(set(range(1000)) - set(gone))

    assert sorted(row.id for row in acid_session.table(f"{db}.wide").collect()) == expected


@pytest.mark.parametrize("refused", [1, 4])
def test_deleted_rows_are_found_whichever_way_keeps_their_chunks_apart(acid_session, partitioned, monkeypatch, refused) -> None:
    """The first ways of mixing a chunk's two numbers are refused here; they fail by themselves only for many chunks."""
    real, asked = deleted._apart, []
    monkeypatch.setattr(deleted, "_apart", lambda mixed: real(mixed) if len(asked) == refused else asked.append(mixed))
    gone = [5, 7, 38, 45, 48, 79]
    acid_session.sql(f"DELETE FROM {partitioned} WHERE id IN ({', '.join(map(str, gone))})")

    rows = acid_session.table(partitioned).select("id").collect()

    assert len(asked) == refused
    assert sorted(row.id for row in rows) == sorted(set(range(_PARTITIONS * 2)) - set(gone))
