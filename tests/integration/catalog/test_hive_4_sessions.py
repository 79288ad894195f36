"""What Hive 4's engine asks of a metastore beside tables and transactions."""

from copy import copy
from uuid import UUID

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.catalog_events import decoded, events, last_id

ORC = "org.apache.hadoop.hive.ql.io.orc."
MSCK = "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy"


@pytest.fixture
def server_settings(request, tmp_path):
    return getattr(request, "param", lambda _: {})(tmp_path)


@pytest.fixture
def table(client):
    """``table(**fields)``: what create_table is sent, in database d."""
    client.create_database(T.Database("d"))
    return lambda **fields: T.Table(
        tableName="t", dbName="d", partitionKeys=[T.FieldSchema("p", "string")],
        sd=T.StorageDescriptor(cols=[T.FieldSchema("id", "int")], serdeInfo=T.SerDeInfo("", f"{ORC}OrcSerde", {}),
                               inputFormat=f"{ORC}OrcInputFormat", outputFormat=f"{ORC}OrcOutputFormat"), **fields)


@pytest.mark.parametrize("parameters", [{"transactional": "true"}, {}])
def test_the_table_of_a_create_as_select_is_told_before_it_is_made(client, table, tmp_path, parameters):
    told = client.translate_table_dryrun(T.CreateTableRequest(table(parameters=parameters)))
    assert not (tmp_path / "warehouse" / "d.db" / "t").exists()
    with pytest.raises(T.NoSuchObjectException):
        client.get_table("d", "t")

    client.create_table_req(T.CreateTableRequest(table(parameters=parameters)))
    made = client.get_table("d", "t")
    assert (told.sd.location, told.tableType, told.dbName) == (made.sd.location, made.tableType, made.dbName)
    assert told.parameters.keys() == made.parameters.keys()


def test_a_create_as_select_that_cannot_be(client, table):
    elsewhere = table()
    elsewhere.dbName = "nowhere"
    with pytest.raises(T.NoSuchObjectException, match="Database nowhere does not exist"):
        client.translate_table_dryrun(T.CreateTableRequest(elsewhere))
    with pytest.raises(T.InvalidObjectException):
        client.translate_table_dryrun(T.CreateTableRequest(_named(table(), "a\\b")))


def _named(table, name):
    table.tableName = name
    return table


def asked(client, fields=None, mode=None, filters=None):
    """Return the partitions of get_partitions_with_specs."""
    specs = client.get_partitions_with_specs(T.GetPartitionsRequest(
        dbName="d", tblName="t", projectionSpec=fields, filterSpec=T.GetPartitionsFilterSpec(mode, filters))).partitionSpec
    return [T.Partition(one.values, spec.dbName, spec.tableName, one.createTime, one.lastAccessTime, located(spec, one), one.parameters,
                        catName=spec.catName, writeId=spec.writeId) for spec in specs for one in spec.sharedSDPartitionSpec.partitions]


def located(spec, partition):
    """Return the descriptor of a partition as Hive's client puts it together."""
    sd = copy(spec.sharedSDPartitionSpec.sd)
    sd.location = None if spec.rootPath is None else f"{spec.rootPath}{partition.relativePath}"
    return sd


@pytest.fixture
def abc(client, table):
    """Partitions p=a, p=b and p=c; each has two parameters."""
    client.create_table_req(T.CreateTableRequest(table()))
    for value in "abc":
        made = client.append_partition("d", "t", [value])
        made.parameters = {"seen.by": "me", "other": "x", "numFiles": "0", "totalSize": "0", "numFilesErasureCoded": "0"}
        client.alter_partition("d", "t", made)


def test_what_msck_repair_compares_with_the_directories(client, abc):
    fields = T.GetProjectionsSpec(["sd.location", "createTime", "tableName", "values"])

    found = asked(client, fields, T.PartitionFilterMode.BY_NAMES, ["p=a", "p=c", "p=gone"])

    assert [(one.values, one.sd.location.rpartition("/")[2]) for one in found] == [(["a"], "p=a"), (["c"], "p=c")]
    assert {(one.sd.cols, one.sd.inputFormat, one.parameters) for one in found} == {(None, None, None)}


@pytest.mark.parametrize(("mode", "filters", "values"), [
    (None, None, "abc"), (T.PartitionFilterMode.BY_VALUES, ["b"], "b"), (T.PartitionFilterMode.BY_NAMES, ["p=z"], ""),
    (T.PartitionFilterMode.BY_EXPR, ["p > 'a' or p = 'x'", "p < 'c'"], "b")])
def test_partitions_by_a_specification(client, abc, mode, filters, values):
    found = asked(client, mode=mode, filters=filters)

    assert [one.values for one in found] == [[value] for value in values]
    assert found == client.get_partitions_by_names("d", "t", [f"p={value}" for value in values])


@pytest.mark.parametrize("paths", [["parameters"], None])
def test_parameters_of_a_specification(client, abc, paths):
    fields = T.GetProjectionsSpec(paths, "%e%", "%.by")
    assert [one.parameters.keys() for one in asked(client, fields)] == [{"other", "transient_lastDdlTime", "numFiles", "totalSize", "numFilesErasureCoded"}] * 3


@pytest.mark.parametrize(("fields", "mode", "filters", "reason"), [
    (None, T.PartitionFilterMode.BY_NAMES, None, "must be given"),
    (None, T.PartitionFilterMode.BY_EXPR, ["p >"], None), (T.GetProjectionsSpec(["size"]), None, None, "no field size")])
def test_specifications_that_say_nothing(client, abc, fields, mode, filters, reason):
    with pytest.raises(T.MetaException, match=reason):
        asked(client, fields, mode, filters)


def test_partitions_that_msck_drops(client, table):
    """It says that its expressions are text, and sends its own form of one."""
    client.create_table_req(T.CreateTableRequest(table()))
    for value in ("a", "b", "c"):
        client.append_partition("d", "t", [value])

    client.setMetaConf("metastore.expression.proxy", MSCK)
    assert client.getMetaConf("hive.metastore.expression.proxy") == MSCK
    client.drop_partitions_req(T.DropPartitionsRequest("d", "t", T.RequestPartsSpec(exprs=[
        T.DropPartitionsExpr(b"(p='a') OR (p='c')")])))

    assert client.get_partition_names("d", "t", -1) == ["p=b"]
    with pytest.raises(T.MetaException, match="expected one of"):
        client.setMetaConf("metastore.expression.proxy", "com.example.Mine")


def test_columns_change_their_types_where_the_connection_does_not_mind(client, table):
    client.create_table_req(T.CreateTableRequest(table()))
    changed = client.get_table("d", "t")
    changed.sd.cols = [T.FieldSchema("id", "array<int>")]
    with pytest.raises(T.InvalidOperationException, match="types incompatible"):
        client.alter_table("d", "t", changed)

    client.setMetaConf("hive.metastore.disallow.incompatible.col.type.changes", "false")
    client.alter_table("d", "t", changed)
    assert client.get_table("d", "t").sd.cols[0].type == "array<int>"


@pytest.mark.parametrize("server_settings", [lambda tmp_path: {
    "hive.metastore.warehouse.external.dir": (tmp_path / "external").as_uri()}], indirect=True)
def test_managed_tables_stay_in_the_warehouse(client, table, tmp_path):
    client.create_table(_named(table(tableType="MANAGED_TABLE"), "m"))
    client.create_table(_named(table(tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"}), "x"))
    managed, external = (client.get_table("d", name).sd.location for name in "mx")

    assert managed == f"file:{tmp_path}/warehouse/d.db/m"
    assert external == f"file:{tmp_path}/external/d.db/x"
    client.alter_database("d", client.get_database("d"))  # What was left out is still where managed tables go.
    client.create_table(_named(table(tableType="MANAGED_TABLE"), "n"))
    assert client.get_table("d", "n").sd.location == f"file:{tmp_path}/warehouse/d.db/n"
    client.drop_database("d", True, True)
    assert not (tmp_path / "warehouse" / "d.db").exists()


@pytest.mark.parametrize("server_settings", [lambda tmp_path: {
    "hive.metastore.warehouse.external.dir": (tmp_path / "external").as_uri()}], indirect=True)
def test_a_managed_location_is_told_where_it_was_given(client, tmp_path):
    given = f"file:{tmp_path}/warehouse/elsewhere"
    client.create_database(T.Database(name="d"))
    client.create_database(T.Database(name="g", managedLocationUri=given))
    client.create_database(T.Database(name="a"))
    client.alter_database("a", T.Database(name="a", managedLocationUri=given + "2"))
    found = {name: client.get_database(name) for name in ("default", "d", "g", "a")}
    assert {name: each.managedLocationUri for name, each in found.items()} == {"default": None, "d": None, "g": given, "a": given + "2"}
    last = last_id(client)
    client.drop_database("d", True, True)
    client.create_database(T.Database(name="d"))
    client.alter_database("d", T.Database(name="d"))
    messages = [decoded(each) for each in events(client, last)]
    told = [each for message in messages for name, each in message.items() if name.startswith("db") and isinstance(each, T.Database)]
    assert [each.managedLocationUri for each in told] == [None] * 4


def test_one_metastore_has_one_id(client, server):
    told = UUID(client.get_metastore_db_uuid())
    with client.clone() as another:
        assert UUID(another.get_metastore_db_uuid()) == told


def test_an_unknown_type_is_gone(client):
    assert client.drop_type("int") is True


def test_no_function(client, table):
    for call in (lambda: client.alter_function("d", "f", None), lambda: client.create_function(None)):
        with pytest.raises(T.MetaException, match="(?i)function"):
            call()


@pytest.mark.parametrize(("more", "state"), [
    ({}, "initiated"), ({"poolName": "p"}, "refused"), ({"numberOfBuckets": 4}, "refused"), ({"initiatorVersion": "4"}, "refused"),
    ({"orderByClause": "id"}, "refused"), ({"initiatorId": "h-manual"}, "refused")])
def test_a_newer_client_asks_for_a_compaction_again(client, table, more, state):
    client.create_table_req(T.CreateTableRequest(table(parameters={"transactional": "true"})))
    client.append_partition("d", "t", ["a"])
    request = T.CompactionRequest("d", "t", "p=a", T.CompactionType.MINOR, **more)
    first, again = client.compact2(request), client.compact2(request)

    assert (first.accepted, again.accepted, again.state) == (True, False, state)


def test_a_commit_without_a_write_id_gets_an_answer_that_commit_txn_has(client, table):
    client.create_table_req(T.CreateTableRequest(table(parameters={"transactional": "true"})))
    [txn_id] = client.open_txns(T.OpenTxnRequest(num_txns=1, user="ann", hostname="h1")).txn_ids
    client.lock(T.LockRequest([T.LockComponent(
        T.LockType.SHARED_READ, T.LockLevel.TABLE, "d", "t", operationType=T.DataOperationType.INSERT,
        isTransactional=True)], txn_id, "ann", "h1"))

    with pytest.raises(T.TxnAbortedException, match=r"transactional table d.t without having allocated a write id"):
        client.commit_txn(T.CommitTxnRequest(txnid=txn_id))
    assert [one.state for one in client.get_open_txns_info().open_txns] == [T.TxnState.ABORTED]
