"""Column statistics of partitions as PostgreSQL keeps them for the wire, beside the same made of objects."""

import pytest
from thrift.protocol import fastbinary

from metastore.acid.snapshots import ValidWriteIdList
from metastore.catalog.service.statistics import Seen, StatisticsService
from metastore.catalog.store import statistics_wires
from metastore.errors import NoSuchObjectError
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.convert.catalog import statistics_to_thrift
from metastore.thrift_server.convert.structs import struct_to_json
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.statistics import StatisticsHandlers
from metastore.thrift_server.wire.codec import MessageSource
from tests.support.answers import decoded

BITS = bytes(range(256))
LARGE = 2 ** 63 - 1
STATISTICS = [
    T.ColumnStatisticsData(booleanStats=T.BooleanColumnStatsData(1, 0, 3, BITS)),
    T.ColumnStatisticsData(longStats=T.LongColumnStatsData(-LARGE - 1, LARGE, 0, 7, BITS, b"\0")),
    T.ColumnStatisticsData(doubleStats=T.DoubleColumnStatsData(-1.5e300, 5e-324, 0, 7, b"", BITS)),
    T.ColumnStatisticsData(stringStats=T.StringColumnStatsData(9, 1 / 3, 0, 7, BITS)),
    T.ColumnStatisticsData(binaryStats=T.BinaryColumnStatsData(9, 3.0, 0, BITS)),
    T.ColumnStatisticsData(decimalStats=T.DecimalColumnStatsData(
        T.Decimal(scale=-2, unscaled=b"\xff\0"), T.Decimal(scale=3, unscaled=b""), 0, 7, BITS, b"h")),
    T.ColumnStatisticsData(dateStats=T.DateColumnStatsData(T.Date(-1), T.Date(20000), 0, 7, BITS, b"h")),
    T.ColumnStatisticsData(timestampStats=T.TimestampColumnStatsData(T.Timestamp(-1), T.Timestamp(LARGE), 0, 7, BITS, b"h")),
]
"""Each kind with all of its fields."""
FEWER = [
    T.ColumnStatisticsData(longStats=T.LongColumnStatsData(numNulls=1, numDVs=0)),
    T.ColumnStatisticsData(decimalStats=T.DecimalColumnStatsData(highValue=T.Decimal(b"\1", 0), numNulls=1, numDVs=2)),
    T.ColumnStatisticsData(dateStats=T.DateColumnStatsData(numNulls=1, numDVs=2)),
]
TABLE = TableName("hive", "d", "t")
PARTITIONS = ["p=a", "p=ä𝄞", "p=%2F", "p=none"]


@pytest.fixture
def described(d):
    """Partitions, three of which have statistics of every kind, and the columns."""
    columns = [f"c{n}" for n in range(len(STATISTICS) + len(FEWER))]
    d.create(columns=", ".join(f"{name} string" for name in columns), keys="p:string")
    for value in ("a", "ä𝄞", "/", "none"):
        d.add(value)
    for name in PARTITIONS[:3]:
        objects = [T.ColumnStatisticsObj(column, kind, data) for column, kind, data in zip(
            columns, ["string", "decimal(9,2)", "ö"] * 4, [*STATISTICS, *FEWER], strict=False)]
        d.update_partition_column_statistics(T.ColumnStatistics(T.ColumnStatisticsDesc(False, "d", "t", name), objects))
    return columns


def test_every_field_is_there():
    for data in STATISTICS:
        [kind] = struct_to_json(data)
        known = {name for _, _, name, *_ in filter(None, type(getattr(data, kind)).thrift_spec)}
        assert struct_to_json(getattr(data, kind)).keys() == known
    assert {kind for data in STATISTICS for kind in struct_to_json(data)} == {
        name for _, _, name, *_ in filter(None, T.ColumnStatisticsData.thrift_spec)}


@pytest.fixture
def both(database, described):
    """Return a function that gives both forms of an answer: as a client reads it, and the same made of objects."""
    service = StatisticsService(database)

    def of(names, columns=described, write_ids=None):
        request = T.PartitionsStatsRequest("d", "T", columns, names, validWriteIdList=write_ids)
        answer = StatisticsHandlers(service).get_partitions_statistics_req(Call("", (request,), None), request)
        read = decoded("get_partitions_statistics_req", answer)
        by_partition = {}
        found, is_exact = service.get(
            TABLE, names, columns, "hive", Seen(ValidWriteIdList.parse(write_ids) if write_ids else None))
        assert read.isStatsCompliant is is_exact
        for one in found:
            by_partition.setdefault(one.partition, []).append(one)
        objects = T.PartitionsStatsResult(
            {name: statistics_to_thrift(found) for name, found in by_partition.items()})
        spec = [T.PartitionsStatsResult, T.PartitionsStatsResult.thrift_spec]
        sent = T.PartitionsStatsResult()  # a whole number is a double by then
        fastbinary.decode_binary(sent, MessageSource(fastbinary.encode_binary(objects, spec), 0), spec)
        return read.partStats, sent.partStats

    return of


@pytest.mark.parametrize("rows", [1, 25, 10_000], ids=["each alone", "in a snapshot", "at once"])
def test_a_client_reads_the_same_statistics(database, both, described, monkeypatch, rows):
    monkeypatch.setattr(statistics_wires, "ROWS_IN_PIECE", rows)
    asked = ["p=%2f", "p=none", "p=a", "p=ä𝄞", "p=nope"]

    read, objects = both(asked)
    assert read == objects
    assert read.keys() == {"p=%2f", "p=a", "p=ä𝄞"}, "as they were asked for, and none without statistics"
    assert [one.colName for one in read["p=a"]] == sorted(described)
    assert [one.statsData for one in sorted(read["p=a"], key=lambda one: int(one.colName[1:]))] == [*STATISTICS, *FEWER]

    assert both(asked, ["C3", "c0", "nope"])[0] == both(asked, ["c0", "c3"])[1]
    assert both(["p=none"]) == both([]) == both(asked, []) == ({}, {})
    assert database.pool.lent == 0


def test_no_table(database, described):
    request = T.PartitionsStatsRequest("d", "nope", described, ["p=a"])
    for request.validWriteIdList in (None, "d.nope:5:9223372036854775807::"):
        with pytest.raises(NoSuchObjectError, match="nope"):
            StatisticsHandlers(StatisticsService(database)).get_partitions_statistics_req(Call("", (request,), None), request)


def test_whoever_writes_a_row(database, both):
    """Rows that are older than the column have no bytes; a release that does not know it changes those of a row."""
    database.once("UPDATE column_statistics SET wire = NULL WHERE partition = 'p=a'")
    read, objects = both(["p=a"])
    assert read == objects
    assert len(read["p=a"]) == len(STATISTICS) + len(FEWER)

    before = both(["p=ä𝄞"])[0]
    database.once("UPDATE column_statistics SET data = data || '{}', last_analyzed = 1; "
                  """UPDATE column_statistics SET data = '{"longStats": {"numNulls": 5, "numDVs": 6}}', type = NULL
                     WHERE "column" IN ('c0', 'c1')""")
    read, objects = both(["p=ä𝄞"])
    assert read == objects
    assert [one for one in read["p=ä𝄞"] if one.colName not in {"c0", "c1"}] == [
        one for one in before["p=ä𝄞"] if one.colName not in {"c0", "c1"}]
    assert [one.statsData.longStats.numNulls for one in read["p=ä𝄞"] if one.colType is None] == [5, 5]


@pytest.mark.parametrize("rows", [1, 25, 10_000], ids=["each alone", "in a snapshot", "at once"])
def test_a_reader_that_says_what_it_sees(database, both, monkeypatch, rows):
    monkeypatch.setattr(statistics_wires, "ROWS_IN_PIECE", rows)
    database.once("""
        UPDATE tables SET parameters = '{"transactional": "true"}';
        UPDATE column_statistics SET write_id = (ARRAY[3, 5, 7, NULL])[substr("column", 2)::int % 4 + 1], is_whole = true;
        UPDATE column_statistics SET write_id = 5 WHERE partition = 'p=a'""")

    read, objects = both(["p=a", "p=%2f", "p=none"], write_ids="d.t:6:3:3:")
    assert read == objects
    assert [one.colName for one in read["p=%2f"]] == ["c1", "c3", "c5", "c7", "c9"], "those of 5, and those of nobody knows which"
    assert len(read["p=a"]) == len(STATISTICS) + len(FEWER)
    for seen in ("d.t:6:9223372036854775807::", "d.t:5:9223372036854775807::", "d.t:5:2:2:", "d.t:9:9223372036854775807::", "d.t:1:1:1:"):
        for names in (["p=a"], ["p=a", "p=%2f"], ["p=nope"]):
            read, objects = both(names, write_ids=seen)
            assert read == objects
    assert database.pool.lent == 0
    database.once("UPDATE tables SET parameters = '{}'")
    assert both(["p=a"], write_ids="d.t:1:1:1:")[0].keys() == {"p=a"}, "of a table that is not transactional a list says nothing"
