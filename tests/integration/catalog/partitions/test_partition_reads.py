"""Reading partitions: CAT-173 to CAT-205, of CAT-P9 to CAT-P12."""

from collections.abc import Sequence
from typing import Any

import pytest

from metastore.config import CatalogSettings
from metastore.errors import InvalidRequestError, MetaError, NoSuchObjectError
from metastore.thrift_gen.hive_metastore import ttypes

LETTERS = {"1999": "A", "2009": "B", "2017/10": "C", "2017/11": "D"}


def letters(partitions: Sequence[ttypes.Partition]) -> str:
    return "".join(LETTERS.get(part.values[0]) or LETTERS["/".join(part.values[:2])] for part in partitions)


@pytest.mark.parametrize(("most", "expected"), [(-1, "ABCD"), (1, "A"), (3, "ABC"), (0, ""), (32767, "ABCD")])
def test_listing(p4: Any, most: int, expected: str) -> None:
    assert letters(p4.get_partitions("d", "t", most)) == expected
    assert letters(p4.get_partitions_with_auth("d", "T", most, "user", ["group"])) == expected
    assert letters(p4.get_partitions_req(ttypes.PartitionsRequest(dbName="D", tblName="t", maxParts=most)).partitions) == expected
    [spec] = p4.get_partitions_pspec("d", "t", most)
    assert letters(spec.partitionList.partitions) == expected
    assert spec.rootPath == f"file:{p4.warehouse}/d.db/t"
    assert len(p4.get_partition_names("d", "t", most)) == (len(expected) or 4)  # 0 is all: 2.3
    assert len(p4.fetch_partition_names_req(ttypes.PartitionsRequest(dbName="d", tblName="t", maxParts=most))) == len(expected)


@pytest.mark.parametrize(("method", "arguments"), [
    ("get_partitions_with_auth", (-1, "u", [])), ("get_partitions_pspec", (-1,)),
    ("get_partition_names_ps", (["1"], -1)), ("get_partitions_ps", (["1"], -1)),
    ("get_partitions_ps_with_auth", (["1"], -1, "u", [])),
    ("get_partitions_by_filter", ("", -1)), ("get_part_specs_by_filter", ("", -1)), ("get_num_partitions_by_filter", ("",)),
    ("get_partition", (["1", "2", "3"],)), ("get_partition_with_auth", (["1", "2", "3"], "u", [])),
    ("get_partition_by_name", ("yyyy=1/mm=2/dd=3",))])
def test_every_read_says_that_the_table_is_missing(p4: Any, method: str, arguments: tuple[Any, ...]) -> None:
    for db, table in [("d", "no"), ("no", "t"), ("", "t"), ("d", ""), ("@other#d", "t")]:
        with pytest.raises(NoSuchObjectError, match="not found"):
            getattr(p4, method)(db, table, *arguments)
    for db, table in [(None, "t"), ("d", None)]:
        with pytest.raises(MetaError):
            getattr(p4, method)(db, table, *arguments)


def test_the_catalog_may_stand_before_the_database(p4: Any) -> None:
    assert letters(p4.get_partitions("@hive#d", "t", -1)) == "ABCD"


def test_the_configured_limit(p4: Any) -> None:
    limited = type(p4)(p4.db, p4.warehouse, CatalogSettings(limit_partition_request=3))
    for call in (lambda most: limited.get_partitions("d", "t", most), lambda most: limited.get_partitions_by_filter("d", "t", "", most),
                 lambda most: limited.get_partitions_by_filter("d", "t", 'yyyy > "0"', most)):
        with pytest.raises(MetaError, match="exceeds limit"):
            call(-1)
        with pytest.raises(MetaError, match="exceeds limit"):
            call(4)
        assert letters(call(2)) == "AB"
    assert letters(limited.get_partitions_ps("d", "t", ["2017"], -1)) == "CD"
    assert len(limited.get_partition_names("d", "t", -1)) == 4


@pytest.mark.parametrize(("values", "expected"), [
    (["2017"], "CD"), (["2017", "11"], "D"), (["20177", "11"], ""), (["", "11"], "D"), (["2017", "", "26"], "C"), (["20"], ""),
    (["2017", "10", "26"], "C"), ([""], "ABCD"), (["", "", ""], "ABCD"), (["", "", "0."], "")])
def test_partial_specifications(p4: Any, values: list[str], expected: str) -> None:
    assert letters(p4.get_partitions_ps("d", "t", values, -1)) == expected
    assert letters(p4.get_partitions_ps_with_auth("d", "t", values, -1, "u", [])) == expected
    assert len(p4.get_partition_names_ps("d", "t", values, -1)) == len(expected)
    assert letters(p4.get_partitions_ps_with_auth_req(
        ttypes.GetPartitionsPsWithAuthRequest(dbName="d", tblName="t", partVals=values)).partitions) == expected


@pytest.mark.parametrize("values", [["1", "2", "3", "4"], [], None])
def test_partial_specifications_that_do_not_fit(p4: Any, values: Any) -> None:
    with pytest.raises(MetaError, match="Incorrect number of partition values"):
        p4.get_partitions_ps("d", "t", values, -1)
    with pytest.raises(MetaError, match="Incorrect number of partition values"):
        p4.get_partition_names_ps("d", "t", values, -1)


def test_partial_specifications_of_the_request_form(p4: Any) -> None:
    request = ttypes.GetPartitionsPsWithAuthRequest(dbName="d", tblName="t")
    assert letters(p4.get_partitions_ps_with_auth_req(request).partitions) == "ABCD"
    request.partNames = ["yyyy=2017/mm=11/dd=27", "yyyy=1/mm=1/dd=1"]
    assert letters(p4.get_partitions_ps_with_auth_req(request).partitions) == "D"
    names = p4.get_partition_names_ps_req(ttypes.GetPartitionNamesPsRequest(dbName="d", tblName="t", partValues=["2017"], maxParts=1))
    assert names.names == ["yyyy=2017/mm=10/dd=26"]


def test_partial_specifications_see_no_neighbours(rpc: Any) -> None:
    rpc.table(keys="k l")
    values = ["a", "a0", "a/", "a.", "a!", "ab", "", "A"]
    rpc.add_partitions([rpc.part([value, "x"]) for value in values])
    for value in values[:-2]:
        assert [part.values for part in rpc.get_partitions_ps("d", "t", [value], -1)] == [[value, "x"]]
    assert [part.values for part in rpc.get_partitions_ps("d", "t", ["__HIVE_DEFAULT_PARTITION__"], -1)] == [["", "x"]]
    assert len(rpc.get_partitions_ps("d", "t", ["", "x"], -1)) == len(values)


def test_names_are_sorted_by_bytes(rpc: Any) -> None:
    rpc.table(keys="k")
    rpc.add("b", "a", "é", "B", "10", "9", "Z")
    assert rpc.names() == ["k=10", "k=9", "k=B", "k=Z", "k=a", "k=b", "k=é"]


@pytest.mark.parametrize(("most", "expected"), [(-1, 2), (1, 1), (0, 0)])
def test_names_of_partial_specifications_are_limited(p4: Any, most: int, expected: int) -> None:
    assert len(p4.get_partition_names_ps("d", "t", ["2017"], most)) == expected


def test_one_partition(p4: Any) -> None:
    found = p4.get_partition("d", "t", ["2017", "10", "26"])
    assert letters([found]) == "C"
    assert p4.get_partition_with_auth("d", "t", ["2017", "10", "26"], "u", []) == found
    assert found.privileges is None
    assert p4.get_partition_req(ttypes.GetPartitionRequest(dbName="d", tblName="t", partVals=["2017", "10", "26"])).partition == found
    for values, error in [(["2017", "10", "27"], NoSuchObjectError), (["2017", "10"], MetaError), ([], MetaError), (None, MetaError),
                          (["2017", "10", "26", "1"], MetaError)]:
        with pytest.raises(error):
            p4.get_partition("d", "t", values)


def test_one_partition_by_name(p4: Any) -> None:
    assert letters([p4.get_partition_by_name("d", "t", "yyyy=2017/mm=10/dd=26")]) == "C"
    assert letters([p4.get_partition_by_name("d", "t", "yyyy=2017/mm=10/dd=26/more=1")]) == "C"
    for name, error in [("YYYY=2017/mm=10/dd=26", NoSuchObjectError), ("yyyy=2017/mm=10", NoSuchObjectError), ("", MetaError),
                        (None, MetaError), ("junk", NoSuchObjectError), ("yyyy=2017/mm=10/dd=2", NoSuchObjectError)]:
        with pytest.raises(error):
            p4.get_partition_by_name("d", "t", name)


def test_keys_that_need_escaping(rpc: Any) -> None:
    rpc.table(keys="a=b c:int")
    rpc.add_partition(rpc.part(["x/y", "1"]))
    assert rpc.names() == ["a%3Db=x%2Fy/c=1"]
    assert rpc.get_partition("d", "t", ["x/y", "1"]).values == ["x/y", "1"]
    assert rpc.get_partition_by_name("d", "t", "a%3Db=x%2Fy/c=1").values == ["x/y", "1"]
    assert len(rpc.get_partitions_ps("d", "t", ["x/y"], -1)) == 1


def test_by_names(p4: Any) -> None:
    names = ["yyyy=2017/mm=11/dd=27", "yyyy=1999/mm=01/dd=02", "yyyy=1999/mm=01/dd=02", "unknown", "YYYY=2009/mm=02/dd=10"]
    assert letters(p4.get_partitions_by_names("d", "t", names)) == "AD"
    assert p4.get_partitions_by_names("d", "t", []) == []
    with pytest.raises(MetaError):
        p4.get_partitions_by_names("d", "t", None)
    request = ttypes.GetPartitionsByNamesRequest(db_name="@hive#d", tbl_name="t", names=names)
    assert letters(p4.get_partitions_by_names_req(request).partitions) == "AD"


@pytest.mark.parametrize(("text", "most", "expected"), [
    ('yyyy="2017" OR mm="02"', -1, "BCD"), ('yyyy="2017" OR mm="02"', 2, "BC"), ('yyyy="2017" OR mm="02"', 0, ""),
    ('yYyY="2017"', -1, "CD"), ('yyyy="2017" AND mm="99"', -1, ""), ("", -1, "ABCD"), (None, -1, "ABCD"), ("", 2, "AB"),
    ("", 0, ""), ('yyyy like "20.*"', -1, "BCD"), ('yyyy like "%9"', -1, "AB"), ('(mm) in ("01", "10") and dd > "02"', -1, "C")])
def test_by_filter(p4: Any, text: str | None, most: int, expected: str) -> None:
    assert letters(p4.get_partitions_by_filter("d", "t", text, most)) == expected
    request = ttypes.GetPartitionsByFilterRequest(dbName="d", tblName="t", filter=text, maxParts=most)
    assert letters(p4.get_partitions_by_filter_req(request)) == expected
    [spec] = p4.get_part_specs_by_filter("d", "t", text, most)
    assert letters(spec.partitionList.partitions) == expected
    if most == -1:
        assert p4.get_num_partitions_by_filter("d", "t", text) == len(expected)


@pytest.mark.parametrize(("text", "sentence"), [
    ('yyyy=2017"', "Error parsing partition filter"), ("yyyy=2017", "Filtering is supported only on partition keys of type string"),
    ('c1="x"', "Specified key <c1> is not a partitioning key for the table")])
def test_filters_that_are_refused(p4: Any, text: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        p4.get_partitions_by_filter("d", "t", text, -1)
    with pytest.raises(InvalidRequestError, match=sentence):
        p4.get_num_partitions_by_filter("d", "t", text)


def test_a_filter_is_checked_even_without_partitions(rpc: Any) -> None:
    rpc.table()
    with pytest.raises(InvalidRequestError):
        rpc.get_partitions_by_filter("d", "t", "nokey = 1", -1)


def test_typed_keys(rpc: Any) -> None:
    rpc.table(keys="n:int d:date")
    rpc.add("007/2020-01-01", "abc/2020-02-30", "5/2019-12-31", "/2020-1-5", "8589934593/2020-06-01")
    assert [part.values[0] for part in rpc.get_partitions_by_filter("d", "t", "n = 7", -1)] == ["007", "abc"]
    assert [part.values[0] for part in rpc.get_partitions_by_filter("d", "t", "n != 7", -1)] == ["5", "8589934593", "abc"]
    assert [part.values[1] for part in rpc.get_partitions_by_filter("d", "t", "d >= '2020-01-01'", -1)] == [
        "2020-01-01", "2020-06-01", "2020-1-5", "2020-02-30"]
    assert rpc.get_num_partitions_by_filter("d", "t", "n = '__HIVE_DEFAULT_PARTITION__'") == 3


def test_a_value_that_is_not_read_is_given_out_told_and_never_dropped(rpc: Any) -> None:
    rpc.table(keys="n:int")
    rpc.add("7", " 7", "8")
    request = ttypes.PartitionsByExprRequest(dbName="d", tblName="t", expr=b"n = 7")
    result = rpc.get_partitions_by_expr(request)
    assert ([part.values for part in result.partitions], result.hasUnknownPartitions) == ([[" 7"], ["7"]], True)
    assert rpc.get_partition_names_req(request) == ["n= 7", "n=7"]
    parts = ttypes.RequestPartsSpec(exprs=[ttypes.DropPartitionsExpr(expr=b"n = 7")])
    with pytest.raises(InvalidRequestError, match=r"cannot be evaluated here for 1 of them \(n= 7\)"):
        rpc.drop_partitions_req(ttypes.DropPartitionsRequest("d", "t", parts))
    rpc.drop_partition_by_name("d", "t", "n= 7", False)
    assert rpc.get_partitions_by_expr(request).hasUnknownPartitions is False
    rpc.drop_partitions_req(ttypes.DropPartitionsRequest("d", "t", parts))
    assert rpc.get_partition_names("d", "t", -1) == ["n=8"]


def test_a_filter_string_is_an_expression(p4: Any) -> None:
    request = ttypes.PartitionsByExprRequest(dbName="d", tblName="t", expr=b'yyyy = "2017"')
    result = p4.get_partitions_by_expr(request)
    assert (letters(result.partitions), result.hasUnknownPartitions) == ("CD", False)
    specs = p4.get_partitions_spec_by_expr(request)
    assert (letters(specs.partitionsSpec[0].partitionList.partitions), specs.hasUnknownPartitions) == ("CD", False)
    assert p4.get_partition_names_req(request) == ["yyyy=2017/mm=10/dd=26", "yyyy=2017/mm=11/dd=27"]
    request.expr = b"\xff\xfe"
    with pytest.raises(InvalidRequestError):
        p4.get_partitions_by_expr(request)


def test_parts_of_partitions(p4: Any) -> None:
    p4.alter_partition("d", "t", p4.part(["2017", "10", "26"], parameters={"a.1": "x", "a.2": "y", "b": "z"}))
    request = ttypes.GetPartitionsByNamesRequest(
        db_name="d", tbl_name="t", names=["yyyy=2017/mm=10/dd=26"], skipColumnSchemaForPartition=True, includeParamKeyPattern="a%",
        excludeParamKeyPattern="%2")
    [found] = p4.get_partitions_by_names_req(request).partitions
    assert found.sd.cols is None
    assert found.parameters == {"a.1": "x"}


def rows(rpc: Any, *columns: str, **fields: Any) -> list[list[str]]:
    request = ttypes.PartitionValuesRequest(
        dbName="d", tblName=fields.pop("table", "t"), partitionKeys=[ttypes.FieldSchema(column, "string") for column in columns], **fields)
    return [row.row for row in rpc.get_partition_values(request).partitionValues]


def test_partition_values(p4: Any) -> None:
    assert rows(p4, "yyyy", "mm") == [["1999", "01"], ["2009", "02"], ["2017", "10"], ["2017", "11"]]
    assert rows(p4, "yyyy") == [["1999"], ["2009"], ["2017"]]
    assert rows(p4, "yyyy", applyDistinct=False, ascending=False) == [["2017"], ["2017"], ["2009"], ["1999"]]
    assert rows(p4, "mm", filter='yyyy = "2017"') == [["10"], ["11"]]
    assert rows(p4, "dd", partitionOrder=[ttypes.FieldSchema("yyyy", "string")], maxParts=2) == [["02"], ["10"]]
    for columns, fields, error in [((), {}, MetaError), (("nokey",), {}, MetaError), (("yyyy",), {"table": "no"}, MetaError)]:
        with pytest.raises(error):
            rows(p4, *columns, **fields)


def test_names_to_values(rpc: Any) -> None:
    name = "ds=2008-07-01 14%3A13%3A12/hr=14"
    assert rpc.partition_name_to_vals(name) == ["2008-07-01 14:13:12", "14"]
    assert rpc.partition_name_to_spec(name) == {"ds": "2008-07-01 14:13:12", "hr": "14"}
    assert (rpc.partition_name_to_vals(""), rpc.partition_name_to_spec("junk")) == ([], {})
    with pytest.raises(MetaError):
        rpc.partition_name_to_vals(None)
