"""TRUNCATE of transactional tables as Hive 4 sends it: the server writes the empty base that the flag asks for."""

import json
from pathlib import Path

import pytest

from metastore.catalog.service.directories import Directories
from metastore.config import TxnSettings
from metastore.housekeeping.service import PurgeService
from metastore.thrift_gen.hive_metastore import ttypes as T

FLAG = T.EnvironmentContext({"truncateSkipDataDeletion": "true"})
KINDS = {"full ACID": {"transactional": "true"},
         "insert-only": {"transactional": "true", "transactional_properties": "insert_only"}}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def parameters(request):
    return request.param


@pytest.fixture
def made(client, server, tmp_path):
    """``made(parameters, keys)``: the table's directory, with a file in it or in each of its partitions p=1 and p=2."""
    def make(parameters, *keys):
        client.create_database(T.Database("d"))
        orc = "org.apache.hadoop.hive.ql.io.orc."
        client.create_table(T.Table(
            tableName="t", dbName="d", parameters={**parameters, "numRows": "5"}, partitionKeys=[
                T.FieldSchema(key, "string") for key in keys],
            sd=T.StorageDescriptor(cols=[T.FieldSchema("id", "int")], serdeInfo=T.SerDeInfo("", f"{orc}OrcSerde", {}),
                                   inputFormat=f"{orc}OrcInputFormat", outputFormat=f"{orc}OrcOutputFormat")))
        places = [client.get_table("d", "t").sd.location]
        if keys:
            places = [client.append_partition("d", "t", [value]).sd.location for value in "12"]
        for place in places:
            (Path(place.removeprefix("file:")) / "delta_0000001_0000001_0000").mkdir()
        return Path(client.get_table("d", "t").sd.location.removeprefix("file:"))
    return make


@pytest.fixture
def begun(client):
    """``begun()``: a transaction with a write id of the table: (transaction, write id)."""
    def begin():
        [txn_id] = client.open_txns(T.OpenTxnRequest(num_txns=1, user="ann", hostname="h1")).txn_ids
        [given] = client.allocate_table_write_ids(T.AllocateTableWriteIdsRequest(
            dbName="d", tableName="t", txnIds=[txn_id])).txnToWriteIds
        return txn_id, given.writeId
    return begin


def truncate(client, write_id, partitions=None, context=FLAG):
    client.truncate_table_req(T.TruncateTableRequest("d", "t", partitions, writeId=write_id, environmentContext=context))


def bases(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("base_*"))


@pytest.mark.parametrize("context", [FLAG, T.EnvironmentContext({"truncateSkipDataDeletion": "false"}), None])
def test_an_empty_base_hides_the_files(client, database, made, begun, parameters, context):
    directory = made(parameters)
    begun()
    txn_id, write_id = begun()

    truncate(client, write_id, context=context)

    assert bases(directory) == ["base_0000002"]
    assert json.loads((directory / "base_0000002" / "_metadata_acid").read_text()) == {
        "thisFileVersion": "0", "dataFormat": "truncated"}
    assert (directory / "delta_0000001_0000001_0000").exists()
    assert client.get_table("d", "t").parameters["numRows"] == "0"
    client.commit_txn(T.CommitTxnRequest(txnid=txn_id))
    assert database.once("SELECT partition, write_id, update_delete FROM completed_txn_components") == [("", 2, True)]


@pytest.mark.parametrize(("names", "emptied"), [(None, ["p=1", "p=2"]), (["p=2"], ["p=2"])])
def test_partitions(client, database, made, begun, parameters, names, emptied):
    directory = made(parameters, "p")
    txn_id, write_id = begun()

    truncate(client, write_id, names)

    assert bases(directory) == [f"{name}/base_0000001" for name in emptied]
    assert database.once("SELECT partition FROM txn_components WHERE txn_id = %s ORDER BY 1", (txn_id,)) == [
        (name,) for name in emptied]


def test_what_an_aborted_truncate_wrote_never_counts(client, server, made, begun):
    """Hive's lock for it names no operation: as a transaction that wrote nothing it would be forgotten at once."""
    made(KINDS["full ACID"])
    txn_id, write_id = begun()
    component = T.LockComponent(T.LockType.EXCL_WRITE, T.LockLevel.TABLE, "d", "t",
                                operationType=T.DataOperationType.NO_TXN, isTransactional=True)
    client.lock(T.LockRequest([component], txn_id, "ann", "h1"))
    truncate(client, write_id)
    client.abort_txn(T.AbortTxnRequest(txnid=txn_id))
    client.open_txns(T.OpenTxnRequest(num_txns=1, user="ann", hostname="h1"))

    purges = PurgeService(server.database, TxnSettings())
    purges.empty_aborted()
    purges.purge_ended()
    purges.purge_write_ids()

    [told] = client.get_valid_write_ids(T.GetValidWriteIdsRequest(fullTableNames=["d.t"])).tblValidWriteIds
    assert told.invalidWriteIds == [write_id]


def test_only_the_write_id_of_an_open_transaction(client, made, begun):
    directory = made(KINDS["full ACID"])
    aborted, of_aborted = begun()
    client.abort_txn(T.AbortTxnRequest(txnid=aborted))
    committed, of_committed = begun()
    client.commit_txn(T.CommitTxnRequest(txnid=committed))
    for write_id in (of_aborted, of_committed, 99):
        with pytest.raises(T.MetaException, match="d.t cannot be emptied with write id"):
            truncate(client, write_id)
    assert bases(directory) == []
    assert client.get_table("d", "t").parameters["numRows"] == "5"


def test_a_transaction_that_ends_while_its_base_is_written(client, made, begun, monkeypatch):
    directory = made(KINDS["full ACID"])
    txn_id, write_id = begun()
    write = Directories.write_empty_base

    def late(self, location, number):
        with client.clone() as another:
            another.abort_txn(T.AbortTxnRequest(txnid=txn_id))
        write(self, location, number)

    monkeypatch.setattr(Directories, "write_empty_base", late)

    with pytest.raises(T.MetaException, match="was not emptied: Transaction txnid:1 already aborted"):
        truncate(client, write_id)
    assert bases(directory) == []
