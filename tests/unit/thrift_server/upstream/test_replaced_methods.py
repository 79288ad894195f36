"""An upstream 4.x has no get_table any more: whoever asks for it gets the answer of the method that took its place."""

import pytest
from thrift.Thrift import TApplicationException, TMessageType

from metastore.config import UpstreamSettings
from metastore.errors import NoSuchObjectError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import immediate
from metastore.thrift_server.wire.protocol import BinaryProtocol
from tests.support.thrift_server import Peer, message, serving, text_field, until
from tests.unit.thrift_server.upstream.test_forwarding import Own, asked, client_of, in_front, raw_upstream


class Newer:
    """The catalog of a metastore 4.x."""

    def __init__(self):
        self.seen = []

    @immediate
    def set_ugi(self, call, user, groups):
        call.connection.user = user
        return groups or []

    @immediate
    def get_table_req(self, call, request):
        self.seen.append((call.connection.peer, call.connection.user, request.catName, request.dbName, request.tblName))
        if request.tblName == "missing":
            raise NoSuchObjectError(f"{request.dbName}.missing table not found")
        table = ttypes.Table(tableName=request.tblName, dbName=request.dbName, parameters={"text": "x" * 1_000_000})
        return ttypes.GetTableResult(table=table)

    @immediate
    def get_table_objects_by_name_req(self, _call, request):
        return ttypes.GetTablesResult(tables=[ttypes.Table(tableName=name, dbName=request.dbName) for name in request.tblNames])

    @immediate
    def get_all_databases(self, _call):
        return ["d"]


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("compact", [False, True])
def test_the_answer_is_that_of_the_older_method(framed, compact):
    request = message("get_table", text_field(1, "d") + text_field(2, "missing") + b"\0", seqid=77)
    if compact:
        request = b"\x82\x21\x4d\x09get_table\x18\x01d\x18\x07missing\x00"
    with in_front(Newer(), framed=framed, compact_protocol=compact) as (server, _), \
            Peer(server.address, compact=compact, framed=framed) as peer:
        for _ in range(2):
            kind, seqid, body = peer.call(request)
            assert (kind, seqid) == (TMessageType.REPLY, 77)
            assert b"d.missing table not found" in body
            assert body[0] == (0x2C if compact else 0x0C)  # field 2, a struct
            assert compact or body[1:3] == b"\0\2"


def test_tables_large_and_many_on_the_clients_own_connection():
    with in_front(Newer()) as (server, catalog), client_of(server, "ann") as client:
        for _ in range(2):
            table = client.get_table("d", "t")
            assert (table.dbName, table.tableName, len(table.parameters["text"])) == ("d", "t", 1_000_000)
        assert client.get_table("@spark#d", "t").dbName == "d"
        assert client.get_all_databases() == ["d"]
        assert [one.tableName for one in client.get_table_objects_by_name("d", ["a", "b"])] == ["a", "b"]
        with pytest.raises(ttypes.NoSuchObjectException, match=r"d\.missing table not found"):
            client.get_table("d", "missing")
        assert len({peer for peer, *_ in catalog.seen}) == 1
        assert {seen[1] for seen in catalog.seen} == {"ann"}
        assert [seen[2] for seen in catalog.seen] == [None, None, "spark", None]
        counted = until(lambda: len(server.forwarded.cells()) == 4 and server.forwarded.cells())
        assert set(counted) == {("get_table", "ok"), ("get_table", "NoSuchObjectException"), ("get_all_databases", "ok"),
                                ("get_table_objects_by_name", "ok")}


def answering(requests, answers):
    """Return the function of an upstream that gives these answers and notes the methods."""
    protocol = BinaryProtocol()

    def serve(sock, _number):
        for data in asked(sock):
            requests.append(protocol.header(data, 0).method)
            sock.sendall(answers[requests[-1]])
    return serve


UNKNOWN = message("get_table", text_field(1, "Invalid method name: 'get_table'") + b"\x08\0\x02\0\0\0\x01\0", 1, TMessageType.EXCEPTION)
WRAPPED = message("get_table_req", b"\x0c\0\0\x0c\0\x01" + text_field(1, "t") + b"\0\0\0", 0, TMessageType.REPLY)


def test_what_it_lacks_is_learnt_once_for_each_connection():
    requests = []
    with raw_upstream(answering(requests, {"get_table": UNKNOWN, "get_table_req": WRAPPED})) as settings, \
            serving(Own(), upstream=settings) as server, client_of(server) as client:
        assert [client.get_table("d", "t").tableName for _ in range(3)] == ["t"] * 3
        client.set_ugi("bob", [])  # which needs another connection: whoever is there may have it
        assert client.get_table("d", "t").tableName == "t"
    assert requests == ["get_table", *["get_table_req"] * 3, "get_table", "get_table_req"]


def test_other_errors_are_passed_on():
    broken = message("get_table", text_field(1, "Internal error processing get_table") + b"\x08\0\x02\0\0\0\x06\0", 1, TMessageType.EXCEPTION)
    requests = []
    with raw_upstream(answering(requests, {"get_table": broken})) as settings, \
            serving(Own(), upstream=settings) as server, client_of(server) as client:
        for _ in range(2):
            with pytest.raises(TApplicationException, match="Internal error processing get_table"):
                client.get_table("d", "t")
    assert requests == ["get_table"] * 2


def test_who_lacks_both_says_so():
    neither = message("get_table_req", text_field(1, "Invalid method name: 'get_table_req'") + b"\x08\0\x02\0\0\0\x01\0", 0, TMessageType.EXCEPTION)
    with raw_upstream(answering([], {"get_table": UNKNOWN, "get_table_req": neither})) as settings, \
            serving(Own(), upstream=settings) as server, client_of(server) as client:
        with pytest.raises(TApplicationException, match="Invalid method name: 'get_table_req'"):
            client.get_table("d", "t")
        assert client.getStatus() == 2


def test_arguments_that_cannot_be_read_are_refused_and_the_connection_stays():
    with in_front(Newer()) as (server, catalog), Peer(server.address) as peer:
        for _ in range(2):
            kind, _, body = peer.call(message("get_table_objects_by_name", text_field(1, "@d") + b"\x0f\0\2\x08\0\0\0\1\0\0\0\1\0"))
            assert kind == TMessageType.REPLY
            assert b"the arguments of get_table_objects_by_name cannot be read" in body
        assert peer.call(message("getStatus"))[0] == TMessageType.REPLY
        assert catalog.seen == []


def test_it_ends_while_the_answer_is_put_into_older_words():
    """The client gets one answer, and the next call a connection of its own."""
    def serve(sock, number):
        for data in asked(sock):
            if b"get_table_req" in data:
                sock.sendall(WRAPPED)
                return
            sock.sendall(UNKNOWN)

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, client_of(server) as client:
        assert [client.get_table("d", "t").tableName for _ in range(3)] == ["t"] * 3
        until(lambda: not server.in_flight)


def test_no_upstream_is_told_as_for_any_call():
    settings = UpstreamSettings(uris=("thrift://127.0.0.1:1",))
    with serving(Own(), upstream=settings) as server, client_of(server) as client, \
            pytest.raises(ttypes.MetaException, match="does not answer"):
        client.get_table("d", "t")
