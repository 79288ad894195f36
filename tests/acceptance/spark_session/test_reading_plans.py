"""How a snapshot is read: which files and row groups are opened, how deleted rows are left out; right either way."""

import pytest

from metastore.spark import deleted, reader

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


@pytest.mark.parametrize("words", [1_000_000, 0])
def test_only_the_columns_that_are_asked_for_are_read_beside_deletes(acid_session, spark, db, monkeypatch, words) -> None:
    monkeypatch.setattr(deleted, "MAX_WORDS", words)
    acid_session.sql(f"CREATE TABLE {db}.wide (id BIGINT, one STRING, other STRING) {_ACID}")
    acid_session.insert(f"{db}.wide", spark.range(10).selectExpr("id", "'x' AS one", "'y' AS other"))
    acid_session.sql(f"DELETE FROM {db}.wide WHERE id = 3")

    frame = acid_session.table(f"{db}.wide").select("id")

    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    scans = [node for node in _nodes(frame) if node.nodeName().startswith("Scan") and "rows" not in node.toString()]
    assert "row:struct<id:bigint>" in "".join(node.requiredSchema().catalogString() for node in scans)


def _rows_read(frame) -> int:
    return sum(node.metrics().apply("numOutputRows").value() for node in _nodes(frame) if node.nodeName().startswith("Scan"))


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


def test_no_join_where_nothing_is_deleted(acid_session, partitioned) -> None:
    frame = acid_session.table(partitioned)

    assert frame.count() == _PARTITIONS * 2
    assert not [node for node in _nodes(frame) if "Join" in node.nodeName()]


def test_row_ids_far_apart_are_told_from_each_other(acid_session, spark, db) -> None:
    """Bits of words of 64 row ids: the first, the last and neighbours of words, beyond 2**33."""
    acid_session.sql(f"CREATE TABLE {db}.wide (id BIGINT) CLUSTERED BY (id) INTO 2 BUCKETS {_ACID}")
    acid_session.insert(f"{db}.wide", spark.range(0, 1000, numPartitions=3))
    gone = [0, 1, 63, 64, 65, 127, 128, 333, 334, 666, 999]
    acid_session.sql(f"DELETE FROM {db}.wide WHERE id IN ({', '.join(map(str, gone))})")
    expected = sorted(set(range(1000)) - set(gone))

    assert sorted(row.id for row in acid_session.table(f"{db}.wide").collect()) == expected
