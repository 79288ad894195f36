"""A transactional table is for clients that can handle it, and its name for everybody (CLIENT-11)."""

import pytest

from metastore.client import DomainClient, MetastoreClient
from metastore.errors import MetaError
from metastore.thrift_gen.hive_metastore import ttypes as T

HIVE_3 = T.ClientCapabilities([T.ClientCapability.INSERT_ONLY_TABLES])
KINDS = {
    "full": {"transactional": "true"},
    "appended": {"transactional": "true", "transactional_properties": "insert_only"},
    "plain": {},
}


@pytest.fixture
def server_settings(request):
    return getattr(request, "param", {})


@pytest.fixture
def client(server):
    """Yield a client that calls get_table as the wire has it: without its capabilities."""
    with MetastoreClient(server.thrift_uri) as connected:
        yield connected


@pytest.fixture
def tables(server, tmp_path):
    """Create a database ``d`` with a table of each kind, through a DomainClient, and return the server."""
    with DomainClient(server.thrift_uri) as client:
        client.create_database(T.Database("d", "", (tmp_path / "d").as_uri(), {}))
        for name, parameters in KINDS.items():
            client.create_table(
                T.Table(
                    tableName=name,
                    dbName="d",
                    tableType="MANAGED_TABLE",
                    partitionKeys=[],
                    parameters=parameters,
                    sd=T.StorageDescriptor(
                        cols=[T.FieldSchema("id", "int", "")],
                        serdeInfo=T.SerDeInfo("", "", {}),
                        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
                    ),
                )
            )
    return server


def refused(server, kind):
    return server.table_stats.refused.labels(kind)._value.get()


def request(name, **fields):
    return T.GetTableRequest("d", name, **fields)


def test_a_client_that_says_nothing(tables, client):
    """As Hive 2.3, Spark's built-in client and PyIceberg ask; and Hive 2.3.8, without capabilities."""
    for name, kind in (("full", "full ACID"), ("appended", "insert-only")):
        for ask, arguments in ((client.get_table, ("d", name)), (client.get_table_req, (request(name),)),
                               (client.get_table_req, (request(name, capabilities=T.ClientCapabilities([])),))):
            with pytest.raises(T.MetaException, match=rf"d\.{name} is a transactional table \({kind}\)"):
                ask(*arguments)
        assert refused(tables, kind) == 3
    assert client.get_table("d", "plain") == client.get_table_req(request("plain")).table
    with pytest.raises(T.NoSuchObjectException):
        client.get_table("d", "missing")


def test_everybody_sees_that_it_is_there_and_may_drop_it(tables, client):
    assert client.get_all_tables("d") == client.get_tables("d", "*") == ["appended", "full", "plain"]
    assert {each.tableName for each in client.get_table_objects_by_name("d", list(KINDS))} == set(KINDS)
    assert {each.tableName for each in client.get_table_meta("d", "*", [])} == set(KINDS)
    client.drop_table("d", "full", True)
    assert client.get_all_tables("d") == ["appended", "plain"]
    client.drop_database("d", True, True)


def test_clients_that_say_that_they_can(tables, client):
    for name in KINDS:
        assert client.get_table_req(request(name, capabilities=HIVE_3)).table.tableName == name
    named = request("full", processorCapabilities=["HIVEFULLACIDREAD"])
    assert client.get_table_req(named).table.tableName == "full"
    with pytest.raises(T.MetaException, match="insert-only"):
        client.get_table_req(request("appended", processorCapabilities=["HIVEFULLACIDREAD"]))


def test_our_own_client_can(tables):
    with DomainClient(tables.thrift_uri) as own:
        assert [own.get_table("d", name).tableName for name in KINDS] == list(KINDS)
        assert own.get_table("@hive#D", "FULL").catName == "hive"
        with pytest.raises(MetaError, match="acid.spark"):
            own.get_table_req(request("full"))


def test_a_connection_that_wants_no_check(tables, client):
    """What Hive 2.3 sends for SET metaconf; another connection is not touched by it."""
    for key in ("hive.metastore.client.capability.check", "metastore.client.capability.check"):
        client.setMetaConf(key, "false")
        assert client.get_table("d", "full").tableName == "full"
        client.setMetaConf(key, "TRUE")
        with pytest.raises(T.MetaException):
            client.get_table("d", "full")
    client.setMetaConf("metastore.client.capability.check", "false")
    with MetastoreClient(tables.thrift_uri) as other, pytest.raises(T.MetaException):
        other.get_table("d", "full")


@pytest.mark.parametrize("server_settings", [{"metastore.client.capability.check": "false"}], indirect=True)
def test_no_check_at_all(tables, client):
    assert client.get_table("d", "full").tableName == "full"
    assert client.getMetaConf("metastore.client.capability.check") == "false"
    client.setMetaConf("metastore.client.capability.check", "true")
    with pytest.raises(T.MetaException):
        client.get_table("d", "full")


@pytest.mark.parametrize(
    "server_settings",
    [
        {"metastore.client.capability.trusted": "hive, 192.0.2.0/24"},
        {"metastore.client.capability.trusted": "127.0.0.0/8"},
    ],
    indirect=True,
    ids=["a user", "an address"],
)
def test_hive_2_3_is_trusted_by_its_user_or_address(tables, server_settings):
    by_address = "127" in server_settings["metastore.client.capability.trusted"]
    for user, trusted in (("hive", True), ("spark", by_address)):
        with MetastoreClient(tables.thrift_uri, user=user) as other:
            if trusted:
                assert other.get_table("d", "full").tableName == "full"
            else:
                with pytest.raises(T.MetaException):
                    other.get_table("d", "full")


@pytest.mark.parametrize("server_settings", [{"metastore.client.capability.doubted": "spark"}], indirect=True)
def test_a_spark_with_the_client_of_hive_3_is_doubted(tables):
    """Its Hive client says INSERT_ONLY_TABLES, and Spark reads no rows; our own in the same driver can."""
    with MetastoreClient(tables.thrift_uri, user="spark") as spark, pytest.raises(T.MetaException):
        spark.get_table_req(request("full", capabilities=HIVE_3))
    with MetastoreClient(tables.thrift_uri, user="hive") as hive, DomainClient(tables.thrift_uri, user="spark") as own:
        assert hive.get_table_req(request("full", capabilities=HIVE_3)).table == own.get_table("d", "full")


def test_a_refusal_is_counted_and_logged(tables, client):
    from structlog.testing import capture_logs

    with capture_logs() as lines, pytest.raises(T.MetaException):
        client.get_table("d", "full")
    [line] = [line for line in lines if line["event"] == "call_refused"]
    assert (line["method"], line["table"], line["kind"], line["user"]) == (
        "get_table",
        "d.full",
        "full ACID",
        client.user,
    )
    _, page = tables.metrics.text("")
    assert b'metastore_tables_refused_total{kind="full ACID"} 1.0' in page
