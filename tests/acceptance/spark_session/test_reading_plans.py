"""How a snapshot is read: which files are opened, which join takes the deleted rows out; the rows are right either way."""

import pytest

from metastore.spark import reader

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


@pytest.mark.parametrize(("one_by_one", "words", "join"), [
    (1_000_000, 1_000_000, "BroadcastHashJoin"), (0, 1_000_000, "BroadcastHashJoin"), (0, 0, "SortMergeJoin")])
def test_deletes_hide_the_same_rows_by_every_join(acid_session, partitioned, monkeypatch, one_by_one, words, join) -> None:
    monkeypatch.setattr(reader, "BROADCAST_LIMIT", one_by_one)
    monkeypatch.setattr(reader, "WORD_LIMIT", words)
    acid_session.sql(f"DELETE FROM {partitioned} WHERE p = 5 OR id IN (7, 48)")
    acid_session.sql(f"UPDATE {partitioned} SET id = id + 1000 WHERE id = 11")

    frame = acid_session.table(partitioned)

    expected = (set(range(_PARTITIONS * 2)) - {5, 45, 7, 48, 11}) | {1011}
    assert sorted(row.id for row in frame.select("id").collect()) == sorted(expected)
    frame.collect()
    assert join in {node.nodeName() for node in _nodes(frame)}
    assert frame.where("p = 5").count() == 0


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

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reader, "BROADCAST_LIMIT", 0)
        assert sorted(row.id for row in acid_session.table(f"{db}.wide").collect()) == expected
