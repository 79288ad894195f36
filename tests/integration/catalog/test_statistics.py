"""Column statistics (CAT-S1 to CAT-S4)."""

import json

import pytest
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes as T


def long(low, high, nulls=0, distinct=1, **fields):
    return T.ColumnStatisticsData(longStats=T.LongColumnStatsData(low, high, nulls, distinct, **fields))


def string(longest, average=1.0, nulls=0, distinct=1):
    return T.ColumnStatisticsData(stringStats=T.StringColumnStatsData(longest, average, nulls, distinct))


def statistics(partition=None, table="t", db="d", is_table=None, engine=None, **columns):
    types = {"longStats": "int", "stringStats": "string"}
    objects = [T.ColumnStatisticsObj(name, next(text for kind, text in types.items() if getattr(data, kind)), data)
               for name, data in columns.items()]
    is_table = partition is None if is_table is None else is_table
    return T.ColumnStatistics(T.ColumnStatisticsDesc(is_table, db, table, partition), objects, engine=engine)


def of_table(hive, *columns, table="t", **fields):
    found = hive.get_table_statistics_req(T.TableStatsRequest("d", table, list(columns), **fields)).tableStats
    return {one.colName: one.statsData for one in found}


def aggregate(hive, columns, partitions):
    found = hive.get_aggr_stats_for(T.PartitionsStatsRequest("d", "t", columns, partitions))
    return {one.colName: one.statsData for one in found.colStats}, found.partsFound


@pytest.fixture
def parted(d):
    """Create a table with partitions a, b and c."""
    d.create(keys="p:string")
    for value in "abc":
        d.add(value)
    return d


def test_of_a_table(d):  # CAT-233
    d.create()
    assert d.update_table_column_statistics(statistics(table="T", ID=long(1, 9, bitVectors=b"HLL\xff")))
    assert of_table(d, "Id", "name") == {"id": long(1, 9, bitVectors=b"HLL\xff")}
    found = d.get_table_column_statistics("D", "t", "ID")
    assert (found.statsDesc.tableName, found.statsDesc.isTblLevel, found.statsObj[0].colType) == ("t", True, "int")
    assert found.statsDesc.lastAnalyzed > 0
    assert json.loads(d.get_table("d", "t").parameters["COLUMN_STATS_ACCURATE"]) == {"COLUMN_STATS": {"id": "true"}}


def test_nothing_there(d):  # CAT-234
    d.create()
    with pytest.raises(TApplicationException) as missing:
        d.get_table_column_statistics("d", "t", "id")
    assert missing.value.type == TApplicationException.MISSING_RESULT
    assert of_table(d, "id", "nope") == of_table(d) == {}
    with pytest.raises(T.NoSuchObjectException):
        of_table(d, "id", table="nope")


def test_unknown_column_and_table(d):  # CAT-235, CAT-236
    d.create()
    with pytest.raises(T.MetaException, match="Column nope doesn't exist"):
        d.update_table_column_statistics(statistics(nope=long(1, 2)))
    with pytest.raises(T.NoSuchObjectException):
        d.update_table_column_statistics(statistics(table="nope", id=long(1, 2)))


def test_delete(d):  # CAT-237
    d.create()
    d.update_table_column_statistics(statistics(id=long(1, 2), name=string(4)))
    assert d.delete_table_column_statistics("d", "t", "ID", None)
    assert set(of_table(d, "id", "name")) == {"name"}
    assert "id" not in d.get_table("d", "t").parameters["COLUMN_STATS_ACCURATE"]
    assert d.delete_table_column_statistics("d", "t", None, "hive")
    assert of_table(d, "id", "name") == {}
    for args in (("d", "t", None, None), ("d", "t", "id", None), ("d", "nope", None, None)):
        with pytest.raises(T.NoSuchObjectException):
            d.delete_table_column_statistics(*args)
    with pytest.raises(T.InvalidInputException):
        d.delete_table_column_statistics("d", None, None, None)


def test_engines_do_not_see_each_other(d):
    d.create()
    d.update_table_column_statistics_req(T.SetPartitionsStatsRequest([statistics(id=long(1, 2))], engine="impala"))
    d.update_table_column_statistics(statistics(id=long(3, 4)))
    assert of_table(d, "id") == of_table(d, "id", engine="hive") == {"id": long(3, 4)}
    assert of_table(d, "id", engine="impala") == {"id": long(1, 2)}


def test_of_partitions(parted):  # CAT-238
    assert parted.update_partition_column_statistics(statistics("p=a", id=long(1, 2)))
    assert parted.get_partition_column_statistics("d", "t", "P=a", "id").statsObj[0].statsData == long(1, 2)
    with pytest.raises(T.NoSuchObjectException):
        parted.update_partition_column_statistics(statistics("p=nope", id=long(1, 2)))
    found = parted.get_partitions_statistics_req(T.PartitionsStatsRequest("d", "t", ["id", "name"], ["p=a", "p=b", "p=x"]))
    assert {name: [one.colName for one in objects] for name, objects in found.partStats.items()} == {"p=a": ["id"]}
    assert "COLUMN_STATS_ACCURATE" in parted.get_partition("d", "t", ["a"]).parameters
    assert parted.delete_partition_column_statistics("d", "t", "p=a", None, None)
    with pytest.raises(T.NoSuchObjectException):
        parted.delete_partition_column_statistics("d", "t", "p=a", "id", None)


def test_aggregate(parted):  # CAT-239, CAT-240
    parted.update_partition_column_statistics(statistics("p=a", id=long(1, 5, 2, 3), name=string(4, 2.0, 1, 7)))
    parted.update_partition_column_statistics(statistics("p=b", id=long(-3, 4, 5, 9), name=string(9, 3.5, 0, 2)))
    found, complete = aggregate(parted, ["id", "NAME"], ["p=a", "p=b"])
    assert found == {"id": long(-3, 5, 7, 9), "name": string(9, 3.5, 1, 7)}
    assert complete == 2
    assert aggregate(parted, ["id"], ["p=a", "p=c"]) == ({"id": long(1, 5, 2, 3)}, 1)
    assert aggregate(parted, [], ["p=a"]) == aggregate(parted, ["id"], []) == ({}, 0)
    parted.update_partition_column_statistics(statistics("p=c", id=long(0, 0)))
    assert aggregate(parted, ["id", "name"], ["p=a", "p=c"])[1] == 1


def test_set_aggregated(parted):  # CAT-241
    one = statistics(id=long(1, 2))
    assert parted.set_aggr_stats_for(T.SetPartitionsStatsRequest([]))
    for wrong in ([one, one], [one, statistics("p=a", id=long(1, 2))],
                  [statistics("p=a", id=long(1, 2)), statistics("p=a", id=long(1, 2))]):
        with pytest.raises(T.MetaException):
            parted.set_aggr_stats_for(T.SetPartitionsStatsRequest(wrong))
    parted.set_aggr_stats_for(T.SetPartitionsStatsRequest([statistics(id=long(1, 5, 2))]))
    parted.set_aggr_stats_for(T.SetPartitionsStatsRequest([statistics(id=long(0, 3, 7))], needMerge=True))
    assert of_table(parted, "id") == {"id": long(0, 5, 9)}
    parted.set_aggr_stats_for(T.SetPartitionsStatsRequest(
        [statistics("p=a", id=long(1, 2)), statistics("p=b", id=long(3, 4))], needMerge=True))
    assert aggregate(parted, ["id"], ["p=a", "p=b"]) == ({"id": long(1, 4)}, 2)


def test_update_of_one(parted):  # CAT-242
    one, merge = statistics(id=long(1, 2)), T.SetPartitionsStatsRequest([statistics(id=long(1, 2))], needMerge=True)
    for call in (parted.update_table_column_statistics_req, parted.update_partition_column_statistics_req):
        for wrong in (T.SetPartitionsStatsRequest([one, one]), T.SetPartitionsStatsRequest([]), merge):
            with pytest.raises(T.InvalidInputException):
                call(wrong)
    assert parted.update_partition_column_statistics_req(
        T.SetPartitionsStatsRequest([statistics("p=a", id=long(1, 2))])).result
    with pytest.raises(T.MetaException):
        parted.update_partition_column_statistics(statistics(None, is_table=False, id=long(1, 2)))


def test_a_changed_column_loses_its_statistics(d):  # CAT-243
    d.create(columns="a int, b int, c string")
    d.update_table_column_statistics(statistics(a=long(1, 2), b=long(3, 4), c=string(5)))
    table = d.get_table("d", "t")
    table.sd.cols = [T.FieldSchema("a", "int"), T.FieldSchema("b", "bigint"), T.FieldSchema("d", "string")]
    d.alter_table("d", "t", table)
    assert of_table(d, "a", "b", "c", "d") == {"a": long(1, 2)}
    assert json.loads(d.get_table("d", "t").parameters["COLUMN_STATS_ACCURATE"]) == {"COLUMN_STATS": {"a": "true"}}


def test_statistics_follow_a_rename_and_go_with_a_drop(d):  # CAT-244
    d.create()
    d.update_table_column_statistics(statistics(id=long(1, 2)))
    table = d.get_table("d", "t")
    table.tableName = "new"
    d.alter_table("d", "t", table)
    assert of_table(d, "id", table="new") == {"id": long(1, 2)}
    d.drop_table("d", "new", True)
    d.create("new")
    assert of_table(d, "id", table="new") == {}


def test_every_kind_comes_back(d):
    kinds = {
        "c0 boolean": T.ColumnStatisticsData(booleanStats=T.BooleanColumnStatsData(1, 2, 3)),
        "c1 double": T.ColumnStatisticsData(doubleStats=T.DoubleColumnStatsData(0.5, 1e300, 3, 4)),
        "c2 binary": T.ColumnStatisticsData(binaryStats=T.BinaryColumnStatsData(3, 1.5, 2)),
        "c3 decimal(9,2)": T.ColumnStatisticsData(decimalStats=T.DecimalColumnStatsData(
            T.Decimal(b"\xff\x00", 2), T.Decimal(b"\x01", 2), 3, 4)),
        "c4 date": T.ColumnStatisticsData(dateStats=T.DateColumnStatsData(T.Date(-5), T.Date(9), 1, 2)),
        "c5 timestamp": T.ColumnStatisticsData(timestampStats=T.TimestampColumnStatsData(
            T.Timestamp(1), T.Timestamp(2), 1, 2, histogram=b"\x00kll")),
        "c6 string": string(3)}
    d.create(columns=", ".join(kinds))
    objects = [T.ColumnStatisticsObj(*column.split(" "), data) for column, data in kinds.items()]
    d.update_table_column_statistics(T.ColumnStatistics(T.ColumnStatisticsDesc(True, "d", "t"), objects))
    assert d.get_table_statistics_req(T.TableStatsRequest("d", "t", [one.colName for one in objects])).tableStats == objects


def test_of_a_transactional_table_do_not_claim_to_be_accurate(d):
    d.create(parameters={"transactional": "true", "transactional_properties": "insert_only"})
    d.update_table_column_statistics(statistics(id=long(1, 2)))
    assert of_table(d, "id") == {"id": long(1, 2)}
    assert "COLUMN_STATS_ACCURATE" not in d.get_table("d", "t").parameters


ACID = {"transactional": "true", "transactional_properties": "insert_only"}


def ids(mark, opened="", aborted=""):
    return f"d.t:{mark}:9223372036854775807:{opened}:{aborted}"


def note(hive, write_ids=None, write_id=-1, partition=None, **columns):
    """Statistics by a transaction that sees ``write_ids``."""
    sent = T.SetPartitionsStatsRequest([statistics(partition, **columns)], writeId=write_id, validWriteIdList=write_ids)
    (hive.update_partition_column_statistics_req if partition else hive.update_table_column_statistics_req)(sent)


def compliant(hive, write_ids, *columns):
    """Which columns have statistics for a reader, and whether they are exact."""
    found = hive.get_table_statistics_req(T.TableStatsRequest("d", "t", list(columns), validWriteIdList=write_ids))
    return [one.colName for one in found.tableStats], found.isStatsCompliant


def test_of_a_transactional_table_are_of_a_state(d):  # CAT-S4
    d.create(parameters=ACID)
    note(d, ids(5), id=long(1, 2))
    note(d, ids(6, opened="6"), write_id=6, name=string(3))
    assert compliant(d, None, "id", "name") == (["id", "name"], None)
    assert [compliant(d, ids(5), "id"), compliant(d, ids(5), "id", "name")] == [(["id"], True), (["id"], False)]
    assert [compliant(d, ids(4), "id"), compliant(d, ids(6, aborted="6"), "name")] == [([], False), ([], False)]
    assert [compliant(d, ids(6), "id"), compliant(d, ids(6), "name")] == [(["id"], False), (["name"], True)]
    assert compliant(d, ids(6, opened="2"), "name") == (["name"], False)
    assert "COLUMN_STATS_ACCURATE" not in d.get_table("d", "t").parameters
    d.update_table_column_statistics(statistics(id=long(1, 3)))  # by who says nothing
    assert [compliant(d, ids(5), "id"), compliant(d, ids(1), "id")] == [(["id"], False), (["id"], False)]


def test_what_is_joined_keeps_saying_of_which_state_it_is(d):
    d.create(parameters=ACID)
    for write_id in (1, 2):
        d.set_aggr_stats_for(T.SetPartitionsStatsRequest(
            [statistics(id=long(write_id, write_id, 1))], needMerge=True, writeId=write_id, validWriteIdList=ids(write_id, opened=str(write_id))))
    assert of_table(d, "id", validWriteIdList=ids(2)) == {"id": long(1, 2, 2)}
    assert [compliant(d, ids(2), "id"), compliant(d, ids(1), "id")] == [(["id"], True), ([], False)]


def test_a_table_that_lies_elsewhere_now_is_another_state(d, tmp_path):
    """No write id tells of it. Nor does one of partitions that come and go."""
    table = d.create(parameters=ACID)
    note(d, ids(5), id=long(1, 2))
    table = d.get_table("d", "t")
    table.sd.location = f"{table.sd.location}_2"
    d.alter_table("d", "t", table)
    assert compliant(d, ids(5), "id") == (["id"], False)


def test_partitions_of_a_state(d):
    d.create(keys="p:string", parameters=ACID)
    d.add("a")
    d.add("b")
    note(d, ids(5), id=long(0, 9))
    note(d, ids(5), partition="p=a", id=long(1, 2, 1))
    note(d, ids(6), partition="p=b", id=long(3, 4, 1))

    def of_partitions(write_ids, *names):
        asked = T.PartitionsStatsRequest("d", "t", ["id"], list(names), validWriteIdList=write_ids)
        each, together = d.get_partitions_statistics_req(asked), d.get_aggr_stats_for(asked)
        assert each.isStatsCompliant is together.isStatsCompliant
        return sorted(each.partStats), [one.statsData.longStats.numNulls for one in together.colStats], together.partsFound, each.isStatsCompliant

    assert compliant(d, ids(5), "id") == (["id"], False)
    assert of_partitions(ids(5), "p=a") == (["p=a"], [1], 1, True)
    assert of_partitions(ids(5), "p=a", "p=b") == (["p=a"], [1], 1, False)
    assert of_partitions(ids(6), "p=a", "p=b") == (["p=a", "p=b"], [2], 2, False)
    assert of_partitions(ids(4), "p=a", "p=b") == ([], [], 0, False)
    assert of_partitions(None, "p=a", "p=b") == (["p=a", "p=b"], [2], 2, None)
    partition = d.get_partition("d", "t", ["b"])
    partition.sd.location = f"{partition.sd.location}_2"
    assert of_partitions(ids(6), "p=b")[-1]
    d.alter_partition("d", "t", partition)
    assert of_partitions(ids(6), "p=b")[-1] is False
