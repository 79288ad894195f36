"""The partition calls through a server and a client: old and new dialect, and the exceptions that each method declares."""

from pathlib import Path
from typing import Any

import pytest

from metastore.catalog.rules.kryo import is_kryo
from metastore.client import MetastoreClient

DROP_DT_1 = bytes.fromhex((Path(__file__).parent / "drop_dt_1.hex").read_text())


@pytest.fixture
def table(client: MetastoreClient, tmp_path: Path) -> Any:
    """``d.t``, partitioned by dt and hr, made through the server; a function that makes a partition."""
    types = client.types
    client.create_database(types.Database(name="d", locationUri=(tmp_path / "d.db").as_uri(), parameters={}))

    def sd(location: str | None = None) -> Any:
        return types.StorageDescriptor(
            cols=[types.FieldSchema("id", "int", "")], location=location, parameters={},
            serdeInfo=types.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}))

    client.create_table(types.Table(
        tableName="t", dbName="d", sd=sd(), tableType="MANAGED_TABLE", parameters={},
        partitionKeys=[types.FieldSchema("DT", "string", None), types.FieldSchema("hr", "int", None)]))

    def partition(*values: str, table: str = "t") -> Any:
        return types.Partition(values=list(values), dbName="d", tableName=table, sd=sd(), parameters={})

    return partition


def test_both_dialects_work_on_the_same_partitions(client: MetastoreClient, table: Any, tmp_path: Path) -> None:
    types = client.types
    client.add_partition(table("1", "1"))
    assert client.add_partitions([table("1", "2"), table("2", "1")]) == 2
    added = client.add_partitions_req(types.AddPartitionsRequest(
        dbName="d", tblName="t", parts=[table("2", "1"), table("2", "2")], ifNotExists=True, catName="hive"))
    assert [part.values for part in added.partitions] == [["2", "2"]]
    names = ["dt=1/hr=1", "dt=1/hr=2", "dt=2/hr=1", "dt=2/hr=2"]
    assert client.get_partition_names("@hive#d", "t", -1) == names
    assert client.fetch_partition_names_req(types.PartitionsRequest(dbName="d", tblName="t", maxParts=-1)) == names
    assert len(client.get_partitions_ps_with_auth("d", "t", ["1", ""], -1, "u", [])) == 2
    assert len(client.get_partitions_by_filter("d", "t", "hr = 1", -1)) == 2
    one = client.get_partition_req(types.GetPartitionRequest(dbName="d", tblName="t", partVals=["1", "1"])).partition
    assert one == client.get_partition("d", "t", ["1", "1"])
    client.rename_partition("d", "t", ["2", "2"], table("3", "x"))
    assert (tmp_path / "d.db" / "t" / "dt=3" / "hr=x").is_dir()
    client.alter_partition("d", "t", one)
    one.parameters |= {"numFiles": "0", "totalSize": "0", "numFilesErasureCoded": "0"}
    assert client.get_partition("d", "t", ["1", "1"]) == one
    assert client.drop_partition("d", "t", ["3", "x"], True) is True
    assert not (tmp_path / "d.db" / "t" / "dt=3").exists()


def test_hive_drops_by_its_own_expression(client: MetastoreClient, table: Any) -> None:
    types = client.types
    client.add_partitions([table("1", "1"), table("1", "2"), table("2", "1")])
    assert is_kryo(DROP_DT_1)
    found = client.get_partitions_by_expr(types.PartitionsByExprRequest(dbName="d", tblName="t", expr=DROP_DT_1, maxParts=-1))
    assert ([part.values for part in found.partitions], found.hasUnknownPartitions) == ([["1", "1"], ["1", "2"]], False)
    dropped = client.drop_partitions_req(types.DropPartitionsRequest(
        dbName="d", tblName="t", parts=types.RequestPartsSpec(exprs=[types.DropPartitionsExpr(DROP_DT_1, 0)]), deleteData=True))
    assert [part.values for part in dropped.partitions] == [["1", "1"], ["1", "2"]]
    assert client.get_partition_names("d", "t", -1) == ["dt=2/hr=1"]


def test_failures_are_the_declared_exceptions(client: MetastoreClient, table: Any) -> None:
    types = client.types
    client.add_partition(table("1", "1"))
    with pytest.raises(types.AlreadyExistsException, match="Partition already exists"):
        client.add_partition(table("1", "1"))
    with pytest.raises(types.InvalidObjectException):
        client.add_partition(table("1", "1", table="no"))
    with pytest.raises(types.MetaException, match="Invalid partition key & values; keys \\[dt, hr, ], values \\[1, ]"):
        client.add_partition(table("1"))
    for call in (lambda: client.get_partition("d", "t", ["1", "2"]),
                 lambda: client.drop_partition("d", "t", ["1", "2"], True)):
        with pytest.raises(types.NoSuchObjectException, match=r".+"):
            call()
    with pytest.raises(types.InvalidOperationException):
        client.alter_partition("d", "t", table("1", "2"))
    with pytest.raises(types.InvalidOperationException):
        client.rename_partition("d", "t", ["1", "2"], table("1", "3"))
    with pytest.raises(types.MetaException, match="Error parsing partition filter"):
        client.get_partitions_by_filter("d", "t", "hr =", -1)
