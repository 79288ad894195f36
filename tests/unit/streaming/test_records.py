"""Texts, mappings and Arrow data become rows of exactly the table's types, or are refused with record and field."""

from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from metastore.acid.types import parse_type
from metastore.client.constraints import EnabledConstraints
from metastore.errors import InvalidOperationError
from metastore.ids import table_name
from metastore.streaming.columns import Column
from metastore.streaming.records import Delimited, Json, RecordError, from_arrow, from_mappings, lines
from metastore.streaming.table import StreamTable


def _columns(**kinds):
    return [Column(name, parse_type(kind)) for name, kind in kinds.items()]


DELIMITED = {
    "boolean": (b"true", True), "tinyint": (b"-128", -128), "smallint": (b"32767", 32767), "int": (b"-1", -1),
    "bigint": (b"9223372036854775807", 2**63 - 1), "float": (b"1.5", 1.5), "double": (b"-0.1", -0.1),
    "decimal(5,2)": (b"-999.99", Decimal("-999.99")), "string": ("größe".encode(), "größe"), "varchar(3)": (b"abc", "abc"),
    "char(3)": (b"ab", "ab"), "binary": (b"\x00\xff", b"\x00\xff"), "date": (b"2024-05-01", date(2024, 5, 1)),
    "timestamp": (b"2024-05-01 10:20:30.123456", datetime(2024, 5, 1, 10, 20, 30, 123456))}


@pytest.mark.parametrize("kind", DELIMITED)
def test_delimited_text_of_every_type(kind):
    text, value = DELIMITED[kind]
    columns = _columns(before="int", c=kind)

    found = Delimited("|").read([b"1|" + text, b"2|\\N"], columns)

    assert found.column("c").type == columns[1].arrow
    assert found.to_pylist() == [{"before": 1, "c": value}, {"before": 2, "c": None}]


@pytest.mark.parametrize(("kind", "text", "reason"), [
    ("tinyint", b"128", "'128' is no tinyint"), ("int", b"1.5", "'1.5' is no int"), ("int", b"", "'' is no int"),
    ("decimal(5,2)", b"1000", "'1000.00' does not fit in decimal(5,2)"),
    ("decimal(5,2)", b"1.234", "'1.234' is no decimal(5,2)"), ("varchar(3)", b"abcd", "'abcd' is longer than varchar(3)"),
    ("string", b"\xff", "is no string"), ("date", b"2024-13-01", "'2024-13-01' is no date"),
    ("boolean", b"1", "'1' is no boolean"), ("timestamp", b"noon", "'noon' is no timestamp")])
def test_delimited_text_that_does_not_fit(kind, text, reason):
    with pytest.raises(RecordError) as caught:
        Delimited().read([b"a,\\N", b"b," + text, b"c,?"], _columns(k="string", c=kind))

    assert (caught.value.record, caught.value.field) == (1, "c")
    assert reason in str(caught.value)


@pytest.mark.parametrize("record", [b"1", b"1,2,3", b"1,2\n3,4", b""])
def test_a_line_of_another_number_of_fields(record):
    with pytest.raises(RecordError, match="Record 1") as caught:
        Delimited().read([b"1,2", record], _columns(a="int", b="int"))
    assert caught.value.record == 1


def test_delimited_text_holds_no_complex_types():
    with pytest.raises(InvalidOperationError, match="Column a is of type array"):
        Delimited().read([b"1"], _columns(a="array<int>"))


def test_json_of_every_type():
    columns = _columns(b="boolean", i="int", d="double", n="decimal(20,2)", s="string", x="binary", day="date",
                       t="timestamp", a="array<decimal(5,1)>", m="map<string,bigint>", im="map<int,string>",
                       st="struct<x:int,y:array<date>>", gone="int")
    text = ('{"b": true, "i": 5, "d": 2, "n": 123456789012345678.25, "s": "ü", "x": "AP8=", "day": "2024-05-01", '
            '"t": "2024-05-01T10:20:30.5", "a": [1.5, null], "m": {"k": 7}, "im": {"5": "five"}, '
            '"st": {"x": 1, "y": ["1969-12-31"]}}')

    [found] = Json().read([text.encode()], columns).to_pylist()

    assert found == {
        "b": True, "i": 5, "d": 2.0, "n": Decimal("123456789012345678.25"), "s": "ü", "x": b"\x00\xff",
        "day": date(2024, 5, 1), "t": datetime(2024, 5, 1, 10, 20, 30, 500000), "a": [Decimal("1.5"), None],
        "m": [("k", 7)], "im": [(5, "five")], "st": {"x": 1, "y": [date(1969, 12, 31)]}, "gone": None}


@pytest.mark.parametrize(("kind", "text", "reason"), [
    ("int", "1.5", "'1.5' is no int"), ("int", '"5"', "'5' is no int"), ("int", "true", "'True' is no int"),
    ("int", "2147483648", "'2147483648' is no int"), ("boolean", "1", "'1' is no boolean"), ("string", "5", "'5' is no string"),
    ("double", '"1"', "'1' is no double"), ("double", "true", "'True' is no double"), ("date", '"yesterday"', "is no date"),
    ("date", "5", "'5' is no date"), ("timestamp", '"2024-05-01T10:00:00Z"', "is no timestamp"),
    ("timestamp", "5", "'5' is no timestamp"), ("binary", '"?"', "'?' is no binary"), ("decimal(5,2)", "1000", "decimal(5,2)"),
    ("decimal(5,2)", "true", "'True' is no decimal(5,2)"), ("array<int>", '"12"', "is no array"),
    ("array<int>", "[1.5]", "is no array"), ("struct<x:int>", '{"y": 1}', "is no struct"),
    ("map<string,int>", "5", "is no map"), ("char(2)", '"abc"', "is longer than char(2)")])
def test_json_that_does_not_fit(kind, text, reason):
    with pytest.raises(RecordError) as caught:
        Json().read([b"{}", b'{"c": null}', f'{{"c": {text}}}'.encode()], _columns(c=kind))

    assert (caught.value.record, caught.value.field) == (2, "c")
    assert reason in str(caught.value)


def test_json_that_is_none():
    for text, reason in ((b"{", "it is no JSON"), (b"[1]", "is no JSON object"), (b'{"other": 1}', "no such column")):
        with pytest.raises(RecordError, match=reason) as caught:
            Json().read([b"{}", text], _columns(c="int"))
        assert caught.value.record == 1


def test_mappings_of_pythons_values():
    columns = _columns(d="date", t="timestamp", n="decimal(5,2)", x="binary", f="float")
    given = {"d": date(2024, 5, 1), "t": datetime(2024, 5, 1), "n": Decimal("1.5"), "x": b"x", "f": 1}

    assert from_mappings([given], columns).to_pylist() == [{**given, "f": 1.0}]
    for wrong in ({"d": datetime(2024, 5, 1)}, {"t": datetime(2024, 5, 1, tzinfo=ZoneInfo("UTC"))}, {"n": 1.5}):
        with pytest.raises(RecordError):
            from_mappings([wrong], columns)


def test_arrow_data_is_matched_by_name_and_converted_exactly():
    columns = _columns(a="int", b="string", c="timestamp", d="decimal(5,2)")
    given = pa.table({"B": ["x"], "a": pa.array([5], pa.int64()), "d": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
                      "c": pa.array([datetime(2024, 5, 1)], pa.timestamp("ns"))})

    assert from_arrow(given, columns).to_pylist() == [
        {"a": 5, "b": "x", "c": datetime(2024, 5, 1), "d": Decimal("1.50")}]
    assert from_arrow(given.select(["a"]).to_batches()[0], columns).to_pylist() == [{"a": 5, "b": None, "c": None, "d": None}]


@pytest.mark.parametrize(("array", "reason"), [
    (pa.array([1, 2**40]), "Record 1, field a: '1099511627776' is no int"),
    (pa.array([1.5]), "Record 0, field a: '1.5' is no int"), (pa.array([["x"]]), "Record 0, field a")])
def test_arrow_data_that_does_not_fit(array, reason):
    with pytest.raises(RecordError) as caught:
        from_arrow(pa.table({"a": array}), _columns(a="int"))
    assert reason in str(caught.value)


def test_an_instant_is_no_wall_clock():
    with pytest.raises(RecordError, match="a timestamp in time zone UTC"):
        from_arrow(pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))}), _columns(t="timestamp"))
    with pytest.raises(RecordError, match="field zz: the table has no such column"):
        from_arrow(pa.table({"zz": [1]}), _columns(t="timestamp"))


def test_lines_of_a_block():
    assert lines(b"a\r\nb\n\nc") == [b"a", b"b", b"", b"c"]
    assert lines(b"") == []
    assert lines(b"a\n") == [b"a"]


def test_a_partition_key_without_one_spelling_is_refused():
    field = SimpleNamespace
    told = SimpleNamespace(
        parameters={"transactional": "true"}, partitionKeys=[field(name="p", type="double")],
        sd=SimpleNamespace(cols=[field(name="A", type="int")], bucketCols=[], sortCols=[], numBuckets=-1, location="/x",
                           inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"))
    with pytest.raises(InvalidOperationError, match="partitioned by p, a double"):
        StreamTable.of(table_name("d", "t"), told, EnabledConstraints((), (), {}))


def test_what_is_left_out_has_its_default():
    columns = [Column("n", parse_type("int")), Column("d", parse_type("decimal(5,2)"), "1.5"), Column("s", parse_type("string"), "'new'")]
    given = [{"n": 1}, {"d": None, "s": "old"}, {"d": 2}]

    assert from_mappings(given, columns).to_pylist() == [
        {"n": 1, "d": Decimal("1.50"), "s": "new"}, {"n": None, "d": None, "s": "old"}, {"n": None, "d": Decimal("2.00"), "s": "new"}]
    assert from_arrow(pa.table({"n": [1, 2]}), columns).column("s").to_pylist() == ["new", "new"]


def test_a_default_that_is_not_known_here_is_asked_for():
    columns = [Column("at", parse_type("timestamp"), "current_timestamp()")]

    assert from_mappings([{"at": None}], columns).to_pylist() == [{"at": None}]
    with pytest.raises(RecordError, match="Record 1, field at: it is left out, and its DEFAULT is not known here"):
        from_mappings([{"at": None}, {}], columns)
