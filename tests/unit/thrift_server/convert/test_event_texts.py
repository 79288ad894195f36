"""Thrift's JSON as we write it, read by Thrift's own Python library."""

import json
import math
from dataclasses import replace

import pytest
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.transport.TTransport import TMemoryBuffer

from metastore.catalog.model import Table
from metastore.catalog.rules.partitions import Partition
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.convert.catalog import table_to_thrift
from metastore.thrift_server.convert.event_texts import EventTexts, struct_text
from metastore.thrift_server.convert.partitions import encode_partitions

ODD = 'a"b\\c\n\t\x01é𝄞/]#'
STRUCTS = [
    T.Table(tableName=ODD, createTime=-1, temporary=True, rewriteEnabled=False, parameters={ODD: ODD, "": ""}, partitionKeys=[],
            sd=T.StorageDescriptor(cols=[T.FieldSchema(ODD, "int", None)], sortCols=[T.Order("a", 1)], bucketCols=[ODD, ""],
                                   skewedInfo=T.SkewedInfo([ODD], [["1"], []], {}))),
    T.ColumnStatistics(T.ColumnStatisticsDesc(True, "d", "t"), [
        T.ColumnStatisticsObj("a", "double", T.ColumnStatisticsData(doubleStats=T.DoubleColumnStatsData(-1.5, 1e300, 3, 2**62))),
        T.ColumnStatisticsObj("b", "decimal", T.ColumnStatisticsData(decimalStats=T.DecimalColumnStatsData(
            T.Decimal(scale=3, unscaled=b"\x00\xff\x10"), None, 0, 1)))]),
    T.ColumnStatisticsData(doubleStats=T.DoubleColumnStatsData(math.inf, -math.inf, 0, 0)),
    T.TableValidWriteIds("t", 7, [1, 2], 3, b"\x80"),
    T.CreationMetadata("c", "d", "t", {"a.b", ODD}),
    T.ObjectDictionary({"x": [b"ab", b""]}),
]


def read(kind, text):
    found = kind()
    found.read(TJSONProtocol(TMemoryBuffer(text.encode())))
    return found


@pytest.mark.parametrize("struct", STRUCTS, ids=[type(struct).__name__ for struct in STRUCTS])
def test_a_struct_is_read_as_it_was(struct):
    text = struct_text(struct)
    json.loads(text)
    assert read(type(struct), text) == struct


def test_no_number_is_one():
    assert json.loads(struct_text(T.DoubleColumnStatsData(math.nan)))["1"]["dbl"] == "NaN"


def test_lists_as_keys_are_written_as_hive_writes_them():
    """Which is no JSON: Hive's reader takes it, that of Thrift's Python library does not."""
    skewed = T.SkewedInfo(skewedColValueLocationMaps={("1", "2"): "file:/x"})
    assert struct_text(skewed) == '{"3":{"map":["lst","str",1,{["str",2,"1","2"]:"file:/x"}]}}'


def test_tables_are_written_as_structs_are():
    sd = {"cols": [{"name": ODD, "type": "int", "comment": ODD}, {"name": "b", "type": "int"}], "location": ODD, "compressed": True,
          "serdeInfo": {"name": ODD, "parameters": {ODD: ""}}, "bucketCols": ["b"], "sortCols": [{"col": "b", "order": 1}]}
    whole = Table(TableName("c", "d", "t"), sd, "MATERIALIZED_VIEW", ODD, 1, 2, 3, 4, [{"name": "k", "type": "int"}], {ODD: ODD},
                  ODD, ODD, True, {"catName": "c", "dbName": "d", "tblName": "t", "tablesUsed": ["d.x"]}, 5, 6)
    tables = [whole, replace(whole, parameters={}), Table(TableName("c", "d", "t"), {"cols": []})]
    texts = EventTexts().tables(*tables)
    for text in texts:
        json.loads(text)
    expected = [table_to_thrift(table) for table in tables]
    for each in expected:
        each.temporary = False  # a reader's default, where nothing is sent
    assert [read(T.Table, text) for text in texts] == expected


def test_partitions_are_written_as_structs_are():
    sd = {"cols": [{"name": ODD, "type": "int"}], "serdeInfo": {"name": ODD, "parameters": {}}, "bucketCols": []}
    partitions = [Partition("k=1", ["1", ODD], sd, f"file:/{ODD}", {ODD: "1"}, 5, 6, 7), Partition("k=2", ["2"], sd, None, {}),
                  Partition("k=3", [], None, None, {})]
    name = TableName("c", "d", ODD)
    texts = EventTexts().partitions(name, partitions)
    for text in texts:
        json.loads(text)
    assert [read(T.Partition, text) for text in texts] == encode_partitions(name, partitions)
