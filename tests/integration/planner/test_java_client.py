"""The client that Spark's catalog calls a planner with: TLS, a planner that has moved, answers that are lost."""

import socket

import pytest

from metastore.config import PlannerSettings, Settings, TlsSettings
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.planner.calls import CALLS
from metastore.planner.client_pool import Metastores
from metastore.planner.server import PlannerServer
from metastore.web import http_server
from tests.integration.planner.conftest import WHO
from tests.support.acid.creating import create_database
from tests.support.certificates import Authority
from tests.support.planner_caller.caller import RefusedError, is_there, java_caller
from tests.support.thrift_server import until

pytestmark = pytest.mark.spark
TRUSTED, OWN = "hive.metastore.truststore.path", "metastore.client.keystore.path"
ANY_NAME = {"metastore.client.ssl.verify.hostname": "false"}


@pytest.fixture(scope="module")
def caller(tmp_path_factory):
    if not is_there():
        pytest.skip("there is no Java compiler")
    with java_caller(tmp_path_factory.mktemp("caller") / "noise.txt") as found:
        yield found


@pytest.fixture
def started(server):
    """``started(tls)``: the address of a planner, and the planner."""
    planners = []

    def start(tls=TlsSettings()):  # noqa: B008 - frozen
        planner = PlannerServer(Metastores(server.thrift_uri), PlannerSettings(), tls)
        host, port = planner.start("127.0.0.1", 0)
        planners.append(planner)
        return f"{'https' if tls.use_ssl else 'http'}://{host}:{port}", planner

    yield start
    for planner in planners:
        planner.stop()
        planner.metastores.close()


@pytest.fixture
def call(caller, server, monkeypatch):
    """Return a function that calls as a Spark that knows the metastore alone; ``call.planner``: the planner's address that the metastore tells."""
    def called(name, **arguments):
        return caller(name, {"hive.metastore.uris": server.thrift_uri}, **arguments)

    lookup = Settings.lookup
    monkeypatch.setattr(Settings, "lookup", lambda self, name: called.planner if name == "hive.metastore.planner.uri" else lookup(self, name))
    return called


@pytest.fixture
def lose(monkeypatch):
    """``lose(name)``: the next answer to a call of that name does not come; ``before``: nor is the call done."""
    lost, send = [], http_server._Talk._send

    async def cut(talk, page, **more):
        if lost:
            lost.clear()
            raise ConnectionAbortedError
        await send(talk, page, **more)

    monkeypatch.setattr(http_server._Talk, "_send", cut)

    def losing(name, *, before=False):
        left = [1]

        def answer(call):
            if not left:
                return CALLS[name].answer(call)
            left.clear()
            if not before:
                CALLS[name].answer(call)
            lost.append(1)
            return {}

        monkeypatch.setattr(planner_server, "CALLS", {**planner_server.CALLS, name: Method(answer)})

    return losing


def states(client):
    return {one.id: one.state for one in client.get_open_txns_info().open_txns}


def test_certificates_are_those_of_the_sessions_settings(caller, client, started, tmp_path):
    authority = Authority(tmp_path)
    address, _ = started(TlsSettings(use_ssl=True, keystore=(str(authority.issue("elsewhere", "elsewhere.example")),),
                                     truststore=(str(authority.path),), client_certificates="required"))
    own = {TRUSTED: str(authority.path), OWN: str(authority.issue("bob"))}

    def refused(**settings):
        with pytest.raises(RefusedError) as error:
            caller("begin", settings, address, kind="DEFAULT", **WHO)
        return str(error.value)

    assert f"TLS_FAILED: The planner at {address} and this Spark do not agree on TLS" in refused()
    assert f"spark.hadoop.{TRUSTED} is what this Spark trusts (not set)" in refused(**ANY_NAME)
    assert "127.0.0.1" in refused(**own).partition("do not agree on TLS")[2]
    assert f"spark.hadoop.{OWN} what it shows where the planner wants a certificate (not set)" in refused(
        **{TRUSTED: own[TRUSTED]}, **ANY_NAME)
    assert "InvalidInputError: hive.metastore.truststore.path: /no/such.pem cannot be read" in refused(**{TRUSTED: "/no/such.pem"})
    assert "holds no private key with its certificate" in refused(**{**own, OWN: str(authority.path)})
    assert client.get_open_txns_info().open_txns == []

    txn = caller("begin", {**own, **ANY_NAME}, address, kind="DEFAULT", **WHO)["txn"]  # which says that it is ann
    [found] = client.get_open_txns_info().open_txns
    assert (found.id, found.user) == (txn, "bob")


def test_a_planner_that_has_moved_is_looked_for(call, client, started, lose):
    call.planner, first = started()
    txn = call("begin", kind="DEFAULT", **WHO)["txn"]
    first.stop()
    call.planner, _ = started()
    lose("heartbeat", before=True)  # with the connection that is still open

    assert call("heartbeat", txn=txn) == {}
    assert call("commit", txn=txn) == {}
    assert states(client) == {}


def test_a_planner_is_beside_the_metastore_that_names_it(call, caller, server, started):
    """Of several metastores the first is down; the other one's planner listens on all addresses of its host."""
    address, _ = started()
    call.planner = address.replace("127.0.0.1", "0.0.0.0")
    with socket.socket() as unused:
        unused.bind(("127.0.0.2", 0))
        down = f"thrift://127.0.0.2:{unused.getsockname()[1]}"
        settings = {"hive.metastore.uris": f"{down}, {server.thrift_uri}", "hive.metastore.client.connect.retry.delay": "0s"}
        assert caller("begin", settings, kind="READ_ONLY", **WHO)["txn"] > 0


@pytest.fixture
def cut_off(started):
    """Yield the address of a planner that answers, but reaches no metastore: the metastore beside it is down."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.2", 0))
        planner = PlannerServer(Metastores(f"thrift://127.0.0.2:{unused.getsockname()[1]}"), PlannerSettings(), TlsSettings())
        host, port = planner.start("127.0.0.1", 0)
        yield f"http://{host}:{port}"
        planner.stop()
        planner.metastores.close()


def test_a_planner_that_reaches_no_metastore_is_left_for_another(caller, client, server, started, cut_off, monkeypatch):
    """It outlives a server that was killed by some seconds; the other server's planner can do what it cannot."""
    other, _ = started()
    named = [cut_off, other]
    lookup = Settings.lookup
    monkeypatch.setattr(Settings, "lookup", lambda self, name: (
        named.pop(0) if len(named) > 1 else other) if name == "hive.metastore.planner.uri" else lookup(self, name))
    settings = {"hive.metastore.uris": f"{server.thrift_uri}, {server.thrift_uri}"}  # which this JVM has not asked yet

    txn = caller("begin", settings, kind="DEFAULT", **WHO)["txn"]

    assert list(states(client)) == [txn]
    assert named == [other]


def test_a_planner_that_reaches_no_metastore_is_not_left_where_none_other_is_named(call, cut_off):
    call.planner = cut_off
    with pytest.raises(RefusedError, match="MetastoreUnreachableError: No metastore answers"):
        call("begin", kind="DEFAULT", **WHO)


def test_a_planner_that_is_nowhere_is_said(call, started, lose):
    call.planner, first = started()
    call("begin", kind="READ_ONLY", **WHO)
    lose("begin", before=True)
    first._http._loop.call_soon_threadsafe(first._http._accepting.cancel)
    until(first._http._accepting.done)
    first._http._listener.close()
    with pytest.raises(RefusedError, match=f"The planner at {call.planner} did not answer to begin"):
        call("begin", kind="READ_ONLY", **WHO)
    with pytest.raises(RefusedError, match=f"PLANNER_UNREACHABLE: The planner at {call.planner} cannot be reached"):
        call("begin", kind="READ_ONLY", **WHO)


@pytest.mark.parametrize("before", [True, False], ids=["not done", "done"])
def test_an_answer_that_is_lost_is_asked_for_again(call, client, started, lose, before):
    call.planner, _ = started()
    for end, answer in (("commit", {}), ("abort", {"aborted": True})):
        txn = call("begin", kind="DEFAULT", **WHO)["txn"]
        lose(end, before=before)
        assert call(end, txn=txn) == answer
        assert txn not in states(client) or states(client)[txn] == client.types.TxnState.ABORTED


def test_what_must_not_be_done_twice_is_an_error(call, client, started, lose):
    call.planner, _ = started()
    create_database(client)
    table = {"db": "d", "table": "t", "columns": [{"name": "n", "type": "int"}], "properties": {"transactional": "true"}}
    lose("create")
    with pytest.raises(RefusedError, match="did not answer to create: .*Whether it was done is not known"):
        call("create", **table, user="ann")
    assert client.get_all_tables("d") == ["t"]
