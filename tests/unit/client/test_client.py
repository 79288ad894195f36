"""Connecting, failing over, and what is sent a second time."""

import socket
import threading
from types import SimpleNamespace

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import AnswerLostError, MetastoreClient, MetastoreUnreachableError
from metastore.client.client import Address, parse_uris
from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.thrift_server import until
from tests.unit.client.fake_server import FakeServer, Hangup


def answering(**methods):
    return SimpleNamespace(**methods)


def hangs_up_first(answer):
    """Close the connection under the first call, answer the next."""
    rest = [Hangup(), answer]

    def handler(*_):
        result = rest.pop(0)
        if isinstance(result, Exception):
            raise result
        return result
    return handler


@pytest.mark.parametrize(("text", "expected"), [
    ("thrift://a:9083", [("a", 9083)]),
    ("thrift://a:1, thrift://b:2/", [("a", 1), ("b", 2)]),
    ("thrift://a", [("a", 9083)]),
    ("a:9084", [("a", 9084)]),
    ("thrift://[::1]:9083", [("::1", 9083)]),
    ("thrift://[::1]", [("::1", 9083)]),
])
def test_addresses(text, expected):
    assert list(parse_uris(text)) == [Address(*one) for one in expected]


@pytest.mark.parametrize("text", ["http://a:9083", "thrift://", "thrift://a:port", "thrift://a:1,,", "jdbc:hive2://a:1"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match="is not a metastore address"):
        parse_uris(text)


def test_every_method_is_an_attribute_and_nothing_else():
    with MetastoreClient("thrift://nowhere:1") as client:
        assert callable(client.get_table)
        assert callable(client.getStatus)
        assert client.types is ttypes
        with pytest.raises(AttributeError, match="has no method 'get_tabel'"):
            client.get_tabel  # noqa: B018


def test_declared_exceptions_keep_the_connection():
    def get_database(name):
        raise ttypes.NoSuchObjectException(f"no {name}")

    with FakeServer(answering(get_database=get_database)) as server, MetastoreClient(server.uri) as client:
        for name in ("a", "b"):
            with pytest.raises(ttypes.NoSuchObjectException):
                client.get_database(name)
        assert len(server.connections) == 1


def test_close_says_goodbye_as_hives_clients_do():
    with FakeServer(answering(get_all_databases=lambda: ["d"])) as server:
        with MetastoreClient(server.uri) as client:
            assert client.get_all_databases() == ["d"]
        server.threads[-1].join()
        assert server.calls == ["get_all_databases", "shutdown"]


@pytest.mark.parametrize(("name", "args", "answer"), [
    ("get_all_databases", (), ["d"]),
    ("show_locks", (ttypes.ShowLocksRequest(),), ttypes.ShowLocksResponse([])),
    ("check_lock", (ttypes.CheckLockRequest(1),), ttypes.LockResponse(1, ttypes.LockState.ACQUIRED)),
    ("allocate_table_write_ids", (ttypes.AllocateTableWriteIdsRequest("d", "t", [1]),),
     ttypes.AllocateTableWriteIdsResponse([ttypes.TxnToWriteId(1, 1)])),
])
def test_what_is_safe_to_repeat_is_repeated(name, args, answer):
    with FakeServer(answering(**{name: hangs_up_first(answer)})) as server, MetastoreClient(server.uri) as client:
        assert getattr(client, name)(*args) == answer
        assert server.calls == [name, name]


@pytest.mark.parametrize(("name", "args"), [
    ("open_txns", (ttypes.OpenTxnRequest(1, "u", "h"),)),
    ("commit_txn", (ttypes.CommitTxnRequest(1),)),
    ("lock", (ttypes.LockRequest([], 1, "u", "h"),)),
    ("create_database", (ttypes.Database("d"),)),
    ("compact2", (ttypes.CompactionRequest("d", "t", None, ttypes.CompactionType.MAJOR),)),
    ("allocate_table_write_ids", (ttypes.AllocateTableWriteIdsRequest("d", "t", [1], reallocate=True),)),
    ("get_lock_materialization_rebuild", ("d", "t", 1)),
])
def test_what_is_not_safe_to_repeat_is_sent_once(name, args):
    with FakeServer(answering(**{name: hangs_up_first(None)})) as server, MetastoreClient(server.uri) as client:
        with pytest.raises(AnswerLostError, match="may or may not have been done"):
            getattr(client, name)(*args)
        assert server.calls == [name]


def test_a_call_by_name_of_its_argument_is_judged_alike():
    rqst = ttypes.AllocateTableWriteIdsRequest("d", "t", [1], reallocate=True)
    with FakeServer(answering(allocate_table_write_ids=hangs_up_first(None))) as server, \
            MetastoreClient(server.uri) as client, pytest.raises(AnswerLostError):
        client.allocate_table_write_ids(rqst=rqst)


def test_a_second_failure_is_reported():
    def get_all_databases():
        raise Hangup

    with FakeServer(answering(get_all_databases=get_all_databases)) as server, MetastoreClient(server.uri) as client:
        with pytest.raises(MetastoreUnreachableError, match="broke off get_all_databases twice"):
            client.get_all_databases()
        assert server.calls == ["get_all_databases"] * 2


def test_a_server_that_restarted_between_calls_is_noticed_before_anything_is_sent():
    opened = answering(open_txns=lambda _: ttypes.OpenTxnsResponse([1]))
    with FakeServer(opened) as server, MetastoreClient(server.uri) as client:
        client.open_txns(ttypes.OpenTxnRequest(1, "u", "h"))
        server.hang_up()

        client.open_txns(ttypes.OpenTxnRequest(1, "u", "h"))

        assert server.calls == ["open_txns", "open_txns"]


def test_a_slow_answer_is_not_asked_for_twice():
    release = threading.Event()
    with FakeServer(answering(get_all_databases=lambda: release.wait(60) and [])) as server, \
            MetastoreClient(server.uri, timeout_s=0.1) as client:
        with pytest.raises(AnswerLostError, match="no answer in time"):
            client.get_all_databases()
        until(lambda: server.calls)  # the client may have given up before the server looked
        release.set()
    server.threads[-1].join()
    assert [name for name in server.calls if name != "shutdown"] == ["get_all_databases"]


def test_fail_over():
    handler = answering(get_all_databases=lambda: ["d"])
    with FakeServer(handler) as first, FakeServer(handler) as second, \
            MetastoreClient(f"{first.uri},{second.uri}") as client:
        client.get_all_databases()
        first.stop()

        assert client.get_all_databases() == ["d"]
        assert second.calls == ["get_all_databases"]


def test_nobody_answers():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        uri = f"thrift://127.0.0.1:{unused.getsockname()[1]}"
    with MetastoreClient(uri) as client, pytest.raises(MetastoreUnreachableError) as caught:
        client.get_all_databases()
    assert str(caught.value) == (
        f"No metastore answers ({uri}: connection refused). Is it running, and is the address right?")


def test_a_server_without_the_method():
    def get_all_databases():
        raise TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'get_all_databases'")

    with FakeServer(answering(get_all_databases=get_all_databases)) as server, MetastoreClient(server.uri) as client:
        for _ in range(2):
            with pytest.raises(TApplicationException, match="Invalid method name"):
                client.get_all_databases()
        assert len(server.connections) == 1


def test_an_argument_that_cannot_be_written_leaves_a_working_client():
    with FakeServer(answering(get_all_databases=lambda: ["d"])) as server, MetastoreClient(server.uri) as client:
        with pytest.raises((TypeError, AttributeError)):
            client.get_database(object())
        assert client.get_all_databases() == ["d"]


def test_threads_that_share_a_client_take_turns():
    inside = []
    most = []

    def get_database(name):
        inside.append(name)
        most.append(len(inside))
        inside.remove(name)
        return ttypes.Database(name)

    with FakeServer(answering(get_database=get_database)) as server, MetastoreClient(server.uri) as client:
        threads = [threading.Thread(target=lambda number=number: [client.get_database(f"d{number}") for _ in range(20)])
                   for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.connections) == 1
        assert len(server.calls) == 80
