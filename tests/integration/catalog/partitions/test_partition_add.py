"""Adding and appending partitions: CAT-139 to CAT-172, of CAT-P1 to CAT-P5."""

import threading
from pathlib import Path
from typing import Any

import pytest

from metastore.catalog.model import TableType
from metastore.config import CatalogSettings
from metastore.errors import AlreadyExistsError, InvalidObjectError, InvalidRequestError, MetaError
from metastore.thrift_gen.hive_metastore import ttypes


def local(location: str) -> Path:
    return Path(location.removeprefix("file:"))


def test_an_added_partition_reads_back_as_sent(rpc: Any) -> None:
    rpc.table(keys="year month")
    sent = rpc.part(["2017", "March"], parameters={"a": "b"}, lastAccessTime=5, createTime=99)
    added = rpc.add_partition(sent)
    assert added.sd.location == f"file:{rpc.warehouse}/d.db/t/year=2017/month=March"
    assert local(added.sd.location).is_dir()
    assert added.createTime > 1_500_000_000
    assert added.parameters == {"a": "b", "transient_lastDdlTime": str(added.createTime)}
    assert (added.dbName, added.tableName, added.catName, added.lastAccessTime, added.writeId) == ("d", "t", "hive", 5, -1)
    assert added.sd.cols == sent.sd.cols
    assert (added.sd.bucketCols, added.sd.sortCols, added.sd.parameters, added.sd.storedAsSubDirectories) == ([], [], {}, False)
    assert added.sd.skewedInfo == ttypes.SkewedInfo([], [], {})
    assert rpc.get_partition("d", "T", ["2017", "March"]) == added
    assert rpc.names() == ["year=2017/month=March"]


def test_values_keep_their_case_and_are_escaped_in_the_name(rpc: Any) -> None:
    directory = rpc.table(keys="k")
    rpc.add_partitions([rpc.part([value]) for value in ("this", "THIS", "next", "a b/c=d:%x", "é")])
    assert rpc.names() == ["k=THIS", "k=a b%2Fc%3Dd%3A%25x", "k=next", "k=this", "k=é"]
    assert (directory / "k=a b%2Fc%3Dd%3A%25x").is_dir()
    assert rpc.get_partition("d", "t", ["a b/c=d:%x"]).values == ["a b/c=d:%x"]


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_the_empty_value_and_the_default_partition_are_one(rpc: Any, value: str) -> None:
    rpc.table(keys="k")
    rpc.add_partition(rpc.part([value]))
    assert rpc.names() == ["k=__HIVE_DEFAULT_PARTITION__"]
    for asked in ("", "__HIVE_DEFAULT_PARTITION__"):
        assert rpc.get_partition("d", "t", [asked]).values == [value]
        with pytest.raises(AlreadyExistsError):
            rpc.add_partition(rpc.part([asked]))


@pytest.mark.parametrize(("change", "error"), [
    ({"dbName": "nodb"}, InvalidObjectError), ({"tableName": "no"}, InvalidObjectError), ({"dbName": ""}, InvalidObjectError),
    ({"tableName": ""}, InvalidObjectError), ({"dbName": None}, MetaError), ({"tableName": None}, MetaError),
    ({"sd": None}, MetaError), ({"values": []}, MetaError), ({"values": None}, MetaError), ({"values": ["1"]}, MetaError),
    ({"values": ["1", "2", "3", "4"]}, MetaError),
    ({"sd": ttypes.StorageDescriptor(cols=[], serdeInfo=None)}, MetaError),
    ({"sd": ttypes.StorageDescriptor(cols=[ttypes.FieldSchema(None, "int")], serdeInfo=ttypes.SerDeInfo())}, MetaError),
    ({"sd": ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", None)], serdeInfo=ttypes.SerDeInfo())}, MetaError),
])
def test_what_is_refused(rpc: Any, change: dict[str, Any], error: type[Exception]) -> None:
    rpc.table()
    with pytest.raises(error):
        rpc.add_partition(_changed(rpc.part(["1", "2", "3"]), change))
    assert rpc.names() == []


def _changed(struct: ttypes.Partition, change: dict[str, Any]) -> ttypes.Partition:
    for name, value in change.items():
        setattr(struct, name, value)
    return struct


@pytest.mark.parametrize("cols", [None, [], [ttypes.FieldSchema("a", "notatype")]])
def test_columns_may_be_anything(rpc: Any, cols: Any) -> None:
    rpc.table(keys="k")
    sd = ttypes.StorageDescriptor(cols=cols, serdeInfo=ttypes.SerDeInfo())
    assert rpc.add_partition(rpc.part(["1"], sd=sd)).sd.cols == cols


def test_locations(rpc: Any, tmp_path: Path) -> None:
    rpc.table(keys="k")
    assert rpc.add_partition(rpc.part(["1"], location="")).sd.location.endswith("/d.db/t/k=1")
    custom = rpc.add_partition(rpc.part(["2"], location=f"{tmp_path}/else//where/")).sd.location
    assert custom == f"file:{tmp_path}/else/where"
    assert local(custom).is_dir()
    with pytest.raises(MetaError):
        rpc.add_partition(rpc.part(["3"], location="%^#$%relative"))
    (tmp_path / "file").touch()
    with pytest.raises(MetaError):
        rpc.add_partition(rpc.part(["3"], location=f"{tmp_path}/file/below"))
    assert rpc.names() == ["k=1", "k=2"]


def test_partitions_of_views_have_no_place(rpc: Any) -> None:
    rpc.table("v", keys="k", type=TableType.VIEW)
    with pytest.raises(MetaError, match="Cannot specify location for a view partition"):
        rpc.add_partition(rpc.part(["1"], "v", location="file:/x"))
    assert rpc.add_partition(rpc.part(["1"], "v")).sd.location is None
    assert rpc.add_partition(rpc.part(["2"], "v", sd=None)).sd is None
    with pytest.raises(MetaError, match="Cannot append a partition to a view"):
        rpc.append_partition("d", "v", ["3"])


def test_an_unpartitioned_table_takes_none(rpc: Any) -> None:
    rpc.table(keys="")
    with pytest.raises(MetaError):
        rpc.add_partition(rpc.part(["1"]))
    with pytest.raises(MetaError):
        rpc.append_partition("d", "t", ["1"])


def test_a_list_is_added_whole_or_not_at_all(rpc: Any) -> None:
    directory = rpc.table(keys="k")
    assert rpc.add_partitions([rpc.part([value]) for value in "abc"]) == 3
    assert rpc.add_partitions([]) == 0
    with pytest.raises(MetaError):
        rpc.add_partitions(None)
    with pytest.raises(AlreadyExistsError, match="Partition already exists"):
        rpc.add_partitions([rpc.part(["d"]), rpc.part(["a"])])
    with pytest.raises(MetaError, match="Duplicate partitions in the list"):
        rpc.add_partitions([rpc.part(["d"]), rpc.part(["d"])])
    with pytest.raises(MetaError):
        rpc.add_partitions([rpc.part(["d"]), rpc.part(["x", "y"])])
    with pytest.raises(MetaError, match="does not belong to target table"):
        rpc.add_partitions([rpc.part(["d"]), rpc.part(["e"], "other")])
    with pytest.raises(InvalidObjectError):
        rpc.add_partitions([rpc.part(["d"], db="nodb"), rpc.part(["e"])])
    (directory / "k=z").touch()
    with pytest.raises(MetaError):
        rpc.add_partitions([rpc.part(["d"]), rpc.part(["z"])])
    assert rpc.names() == ["k=a", "k=b", "k=c"]
    assert not (directory / "k=d").exists()


def test_the_request_form(rpc: Any) -> None:
    rpc.table(keys="k")
    rpc.add("a")

    def request(**fields: Any) -> ttypes.AddPartitionsRequest:
        return ttypes.AddPartitionsRequest(**{"dbName": "d", "tblName": "t", "parts": [rpc.part(["a"]), rpc.part(["b"])],
                                              "ifNotExists": True, **fields})

    with pytest.raises(AlreadyExistsError):
        rpc.add_partitions_req(request(ifNotExists=False))
    assert [part.values for part in rpc.add_partitions_req(request()).partitions] == [["b"]]
    assert rpc.add_partitions_req(request()).partitions == []
    assert rpc.add_partitions_req(request(needResult=False)).partitions is None
    with pytest.raises(MetaError):
        rpc.add_partitions_req(request(parts=[rpc.part(["c"]), rpc.part(["c"])]))
    assert rpc.add_partitions_req(request(parts=[])).partitions == []
    assert rpc.add_partitions_req(request(dbName="@hive#d", parts=[rpc.part(["f"], catName="hive")])).partitions[0].dbName == "d"


def test_columns_may_come_with_the_request(rpc: Any) -> None:
    rpc.table(keys="k")
    columns = [ttypes.FieldSchema("only", "date")]
    part = rpc.part(["a"])
    part.sd.cols = None
    result = rpc.add_partitions_req(ttypes.AddPartitionsRequest(
        dbName="d", tblName="t", parts=[part], ifNotExists=False, skipColumnSchemaForPartition=True, partitionColSchema=columns))
    assert result.partitionColSchema == columns
    assert result.partitions[0].sd.cols is None
    assert rpc.get_partition("d", "t", ["a"]).sd.cols == columns


def spec(body: Any, db: str | None = "d", table: str | None = "t") -> ttypes.PartitionSpec:
    if isinstance(body, list):
        body = ttypes.PartitionListComposingSpec(body)
    name = "partitionList" if isinstance(body, ttypes.PartitionListComposingSpec) else "sharedSDPartitionSpec"
    return ttypes.PartitionSpec(dbName=db, tableName=table, rootPath="/ignored", **({name: body} if body else {}))


def shared(rpc: Any, location: str | None, **paths: str | None) -> ttypes.PartitionSpecWithSharedSD:
    return ttypes.PartitionSpecWithSharedSD(
        [ttypes.PartitionWithoutSD(values=[value], relativePath=path, parameters={}) for value, path in paths.items()],
        rpc.part(["x"], location=location).sd)


def test_partition_specifications(rpc: Any, tmp_path: Path) -> None:
    rpc.table(keys="k")
    assert rpc.add_partitions_pspec([spec([rpc.part([value]) for value in "abc"])]) == 3
    assert rpc.add_partitions_pspec([spec(shared(rpc, f"file:{tmp_path}/s", d="/x", e=None))]) == 2
    assert rpc.get_partition("d", "t", ["d"]).sd.location == f"file:{tmp_path}/s/x"
    assert rpc.get_partition("d", "t", ["e"]).sd.location == f"file:{tmp_path}/snull"
    assert rpc.add_partitions_pspec([]) == 0
    assert rpc.add_partitions_pspec([spec([])]) == 0
    both = spec([rpc.part(["f"])])
    both.sharedSDPartitionSpec = shared(rpc, "file:/nowhere", g="/g")
    assert rpc.add_partitions_pspec([both]) == 1
    for bad, error in [(None, MetaError), ([spec(None)], MetaError), ([spec([rpc.part(["h"])], db=None)], MetaError),
                       ([spec([rpc.part(["h"])], table="no")], InvalidObjectError), ([spec([], db="")], InvalidObjectError),
                       ([spec(shared(rpc, None, h="/h"))], MetaError), ([spec([rpc.part(["a"])])], AlreadyExistsError),
                       ([spec([rpc.part(["h"])]), spec([rpc.part(["h"])])], MetaError)]:
        with pytest.raises(error):
            rpc.add_partitions_pspec(bad)
    assert rpc.names() == [f"k={value}" for value in "abcdef"]


def test_appending(rpc: Any) -> None:
    directory = rpc.table(keys="year month")
    added = rpc.append_partition("d", "t", ["2017", "may"])
    assert added.sd.location == f"file:{directory}/year=2017/month=may"
    assert [column.name for column in added.sd.cols] == ["id", "value"]
    assert rpc.append_partition_by_name("d", "t", "year=2017/month=june/x=1").values == ["2017", "june"]
    assert rpc.append_partition_req(ttypes.AppendPartitionsRequest(dbName="d", tableName="t", name="year=1/month=2")).values == ["1", "2"]
    assert rpc.append_partition_req(ttypes.AppendPartitionsRequest(dbName="d", tableName="t", partVals=["1", "3"])).values == ["1", "3"]
    for arguments, error in [(("d", "t", ["2017", "may"]), AlreadyExistsError), (("d", "no", ["1", "2"]), InvalidObjectError),
                             (("", "t", ["1", "2"]), InvalidObjectError), ((None, "t", ["1", "2"]), MetaError),
                             (("d", "t", []), MetaError), (("d", "t", None), MetaError), (("d", "t", ["1"]), MetaError),
                             (("d", "t", ["1", "2", "3"]), MetaError)]:
        with pytest.raises(error):
            rpc.append_partition(*arguments)
    for name, error in [("year=2017", InvalidObjectError), ("invalidname", InvalidObjectError), ("", MetaError), (None, MetaError),
                        ("jahr=1/month=2", InvalidObjectError)]:
        with pytest.raises(error):
            rpc.append_partition_by_name("d", "t", name)


def test_settings_for_names_and_parameters(rpc: Any) -> None:
    rpc.table(keys="k", parameters={"a": "1", "b": "2", "c": "3"})
    strict = type(rpc)(rpc.db, rpc.warehouse, CatalogSettings(
        partition_name_whitelist="[a-z]+", default_partition_name="__none__", partition_inherit_table_properties="a, b"))
    assert strict.partition_name_has_valid_characters(["abc"], False)
    assert not strict.partition_name_has_valid_characters(["ab1"], False)
    with pytest.raises(InvalidRequestError, match="Partition value 'ab1' contains a character not matched by whitelist"):
        strict.partition_name_has_valid_characters(["ab1"], True)
    with pytest.raises(InvalidRequestError):
        strict.add_partition(rpc.part(["1"]))
    parameters = strict.add_partition(rpc.part(["x"], parameters={"b": "own"})).parameters
    assert (parameters["a"], parameters["b"], "c" in parameters) == ("1", "own", False)
    assert rpc.partition_name_has_valid_characters(["any thing"], True)
    loose = type(rpc)(rpc.db, rpc.warehouse, CatalogSettings(default_partition_name="__none__"))
    loose.add_partition(rpc.part([""]))
    assert rpc.names() == ["k=__none__", "k=x"]


def test_of_many_who_add_the_same_one_wins(rpc: Any) -> None:
    rpc.table(keys="k")
    outcomes: list[str] = []

    def add() -> None:
        try:
            rpc.add_partitions([rpc.part([str(value)]) for value in range(20)])
            outcomes.append("added")
        except AlreadyExistsError:
            outcomes.append("exists")

    threads = [threading.Thread(target=add) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added", *["exists"] * 5]
    assert len(rpc.names()) == 20
    assert all(local(part.sd.location).is_dir() for part in rpc.get_partitions("d", "t", -1))


def test_equal_descriptors_are_kept_once(rpc: Any) -> None:
    rpc.table(keys="k")
    rpc.add(*(str(value) for value in range(50)))
    assert rpc.db.once("SELECT count(*) FROM partition_descriptors") == [(1,)]


def test_an_unstorable_value_is_refused(rpc: Any) -> None:
    rpc.table(keys="k")
    with pytest.raises((MetaError, InvalidObjectError)):
        rpc.add_partition(rpc.part(["a\x00b"]))


def test_nul_in_a_value_is_refused_wherever_partitions_get_values(rpc: Any) -> None:
    rpc.table(keys="k")
    rpc.add("a")
    part = rpc.part(["b\0"])
    part.sd.location = (rpc.warehouse / "shared").as_uri()
    shared = ttypes.PartitionSpecWithSharedSD([ttypes.PartitionWithoutSD(values=["b\0"], relativePath="/x", parameters={})], part.sd)
    renaming = ttypes.RenamePartitionRequest(dbName="d", tableName="t", partVals=["a"], newPart=part)
    for method, arguments in (
            ("add_partition", (part,)), ("add_partitions", ([part],)), ("append_partition", ("d", "t", ["b\0"])),
            ("add_partitions_req", (ttypes.AddPartitionsRequest("d", "t", [part], True),)), ("append_partition_by_name", ("d", "t", "k=b%00")),
            ("add_partitions_pspec", ([ttypes.PartitionSpec("d", "t", sharedSDPartitionSpec=shared)],)),
            ("rename_partition", ("d", "t", ["a"], part)), ("rename_partition_req", (renaming,))):
        with pytest.raises(InvalidRequestError, match=r"'b\\x00' contains a NUL character"):
            getattr(rpc, method)(*arguments)
    assert rpc.names() == ["k=a"]
