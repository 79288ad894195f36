"""Calls that no handler is for go to the upstream as the bytes that they came as, and its answers come back so."""

import socket
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from thrift.Thrift import TApplicationException, TMessageType

from metastore.client.client import MetastoreClient
from metastore.config import Settings, UpstreamSettings
from metastore.errors import NoSuchObjectError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.auth.identity import Identity
from metastore.thrift_server.dispatch.call import immediate, shared
from metastore.thrift_server.upstream.endpoint import session_of
from metastore.thrift_server.upstream.local_handlers import UpstreamSessionHandlers
from tests.support.thrift_server import Peer, message, serving, text_field, until


class Catalog:
    """What the upstream answers."""

    def __init__(self):
        self.seen = []

    @immediate
    def set_ugi(self, call, user, groups):
        self.seen.append(("set_ugi", call.connection.peer, user))
        call.connection.user = user
        return groups or []

    @immediate
    def get_table(self, call, db, name):
        self.seen.append(("get_table", call.connection.peer, call.connection.user))
        if name == "missing":
            raise NoSuchObjectError(f"{db}.{name} table not found")
        return ttypes.Table(tableName=name, dbName=db, parameters={"text": "x" * 100})

    @immediate
    def get_all_tables(self, _call, db):
        return [f"{db}{number}" for number in range(200_000)]

    @immediate
    def setMetaConf(self, call, key, value):
        self.seen.append(("setMetaConf", key, value))

    @immediate
    def drop_table(self, _call, _db, name, _delete):
        self.seen.append(("drop_table", name))


class Own:
    """What is answered here. ``proven``: whom the client's certificate named."""

    def __init__(self, proven=None):
        self.proven = proven

    @immediate
    @shared
    def set_ugi(self, call, _user, groups):
        call.connection.identity = Identity(self.proven)
        return UpstreamSessionHandlers(Settings(), None).set_ugi(call, _user, groups)

    @immediate
    def getStatus(self, _call):
        return 2


@contextmanager
def in_front(catalog=None, proven=None, **settings):
    """(server, catalog): a server whose catalog is another's."""
    catalog = catalog or Catalog()
    with serving(catalog, **settings) as behind:
        address = "thrift://{}:{}".format(*behind.address)
        with serving(Own(proven), upstream=UpstreamSettings(uris=(address,)), **settings) as server:
            server.behind = behind
            yield server, catalog


def client_of(server, user="ann"):
    return MetastoreClient("thrift://{}:{}".format(*server.address), user=user)


@contextmanager
def raw_upstream(serve):
    """Run an upstream that speaks bytes: ``serve(socket, how many were before)`` for each connection; yield its settings."""
    listener = socket.create_server(("127.0.0.1", 0))
    count = iter(range(1000))

    def accept():
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=run, args=(sock, next(count)), daemon=True).start()

    def run(sock, number):
        with sock:
            sock.settimeout(60)
            serve(sock, number)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield UpstreamSettings(uris=(f"127.0.0.1:{listener.getsockname()[1]}",),
                               timeout=timedelta(seconds=60))
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def reply(method, body=b"\0", seqid=1):
    return message(method, body, seqid, TMessageType.REPLY)


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("compact", [False, True])
def test_an_answer_of_the_upstream_arrives_byte_for_byte(framed, compact):
    with in_front(framed=framed, compact_protocol=compact) as (server, _):
        request = message("get_table", text_field(1, "d") + text_field(2, "t") + b"\0", seqid=77)
        if compact:
            request = b"\x82\x21\x4d\x09get_table\x18\x01d\x18\x01t\x00"
        with Peer(server.behind.address, compact=compact, framed=framed) as direct, \
                Peer(server.address, compact=compact, framed=framed) as through:
            expected = direct.call(request)
            assert expected[:2] == (TMessageType.REPLY, 77)
            assert through.call(request) == expected
            assert through.call(request) == expected


def test_one_connection_serves_both_sides():
    with in_front() as (server, _), client_of(server) as client:
        assert client.getStatus() == 2
        assert client.get_table("d", "t").tableName == "t"
        assert client.getStatus() == 2


def test_a_large_answer_arrives_whole():
    with in_front() as (server, _), client_of(server) as client:
        assert client.get_all_tables("d") == [f"d{number}" for number in range(200_000)]


def test_a_client_that_does_not_read_stops_the_upstream_and_not_the_others():
    with in_front() as (server, _), Peer(server.address) as slow, client_of(server) as other:
        request = message("get_all_tables", text_field(1, "d" * 100) + b"\0")
        slow.send(request)
        until(lambda: any(c.sending for c in server._connections))
        held = max(len(c.sending or b"") for c in server._connections)
        assert held <= 1 << 17  # of 20 MB
        assert other.get_table("d", "t").tableName == "t"
        size = 0
        while size < 200_000 * 104:
            size += len(slow.sock.recv(1 << 20))
        until(lambda: not server.in_flight)


def test_the_upstream_is_told_who_the_client_is_on_one_connection_for_each():
    with in_front() as (server, catalog), client_of(server, "ann") as ann, client_of(server, "bob") as bob:
        ann.get_table("d", "t")
        bob.get_table("d", "t")
        ann.get_table("d", "t")
        users = [user for name, _, user in catalog.seen if name == "get_table"]
        assert users == ["ann", "bob", "ann"]
        assert len({peer for name, peer, _ in catalog.seen if name == "get_table"}) == 2


def test_who_says_that_it_is_somebody_else_is_somebody_else_there():
    with in_front() as (server, catalog), client_of(server, "ann") as client:
        client.get_table("d", "t")
        client.set_ugi("bob", [])
        client.get_table("d", "t")
        assert [user for name, _, user in catalog.seen if name == "get_table"] == ["ann", "bob"]


def test_who_has_proven_to_be_somebody_is_nobody_else_there():
    with in_front(proven="ann") as (server, catalog), client_of(server, "bob") as client:
        client.get_table("d", "t")
        client.set_ugi("root", [])
        client.get_table("d", "t")
        assert {user for name, _, user in catalog.seen} == {"ann"}


def test_what_a_client_set_is_set_again_on_its_next_connection():
    with in_front() as (server, catalog), client_of(server) as client:
        client.setMetaConf("k", "v")
        client.set_ugi("bob", [])
        client.get_table("d", "t")
        assert [one for one in catalog.seen if one[0] == "setMetaConf"] == [("setMetaConf", "k", "v")] * 2


def test_an_idle_connection_keeps_little_of_what_its_client_said():
    """32 messages of 1 MB: half with a long value, half with a field that Hive does not have."""
    with in_front() as (server, catalog), Peer(server.address) as peer:
        for number in range(16):
            long = message("setMetaConf", text_field(1, "k") + text_field(2, "v" * (1 << 20)) + b"\0")
            assert b"setMetaConf is at most 8192 bytes long" in peer.call(long)[2], "it is said, not forgotten"
            peer.call(message("setMetaConf", text_field(1, f"k{number}") + text_field(2, "v") + text_field(9, "x" * 5000) + b"\0"))
        peer.call(message("setMetaConf", text_field(1, "k15") + text_field(2, "w") + b"\0"))
        [connection] = server._connections
        said = session_of(connection).settings
        assert sum(map(len, said)) < 2000
        assert [one for one in catalog.seen if one[0] == "setMetaConf"][-1] == ("setMetaConf", "k15", "w")
        assert len(said) == 16


def test_a_client_with_too_long_a_name_is_told_and_not_remembered():
    with in_front() as (server, _), Peer(server.address) as peer:
        peer.call(message("set_ugi", text_field(1, "ann") + b"\0"))
        kind, _, body = peer.call(message("set_ugi", text_field(1, "ann") + text_field(9, "x" * (1 << 20)) + b"\0"))
        [connection] = server._connections
        assert (kind, sum(map(len, session_of(connection).user)) < 100) == (TMessageType.REPLY, True)
        assert b"set_ugi is at most" in body


def test_exceptions_of_the_upstream_are_passed_on_and_counted():
    with in_front() as (server, _), client_of(server) as client:
        client.get_table("d", "t")
        with pytest.raises(ttypes.NoSuchObjectException, match=r"d\.missing table not found"):
            client.get_table("d", "missing")
        with pytest.raises(TApplicationException, match="Invalid method name: 'get_all_databases'"):
            client.get_all_databases()
        counted = until(lambda: len(server.forwarded.cells()) == 3 and server.forwarded.cells())
        assert set(counted) == {("get_table", "ok"), ("get_table", "NoSuchObjectException"),
                                ("get_all_databases", "APPLICATION_EXCEPTION")}


def test_a_method_that_only_the_upstream_knows_is_forwarded():
    def serve(sock, _):
        sock.recv(1000)
        sock.sendall(reply("brand_new"))

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, Peer(server.address) as peer:
        assert peer.call(message("brand_new")) == (TMessageType.REPLY, 1, b"\0")


def test_the_next_address_is_taken_when_one_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"thrift://127.0.0.1:{closed.getsockname()[1]}"
    with serving(Catalog()) as behind:
        uris = (dead, "thrift://{}:{}".format(*behind.address))
        with serving(Own(), upstream=UpstreamSettings(uris=uris)) as server, client_of(server) as client:
            assert client.get_table("d", "t").tableName == "t"


def test_no_upstream_is_a_declared_exception_and_the_connection_stays():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = UpstreamSettings(uris=(f"thrift://127.0.0.1:{port}",))
    with serving(Own(), upstream=settings) as server, client_of(server) as client:
        text = f"upstream thrift://127.0.0.1:{port} does not answer: connection refused"
        with pytest.raises(ttypes.MetaException, match=text):
            client.get_table("d", "t")
        assert client.getStatus() == 2


def asked(sock):
    """Yield the data that arrives, but answer the greeting."""
    while data := sock.recv(1000):
        if b"set_ugi" in data:
            sock.sendall(reply("set_ugi", b"\x0f\0\0\x0b\0\0\0\0\0", 0))
        else:
            yield data


def test_an_answer_that_is_lost_is_asked_for_again_if_that_does_no_harm():
    calls = []

    def serve(sock, number):
        for data in asked(sock):
            calls.append(data)
            if number == 0:
                return
            sock.sendall(reply("get_all_databases", b"\x0f\0\0\x0b\0\0\0\0\0"))

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, client_of(server) as client:
        assert client.get_all_databases() == []
    assert len(calls) == 2


def test_a_change_whose_answer_is_lost_is_not_sent_again():
    calls = []

    def serve(sock, _number):
        for data in asked(sock):
            calls.append(data)
            return

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, client_of(server) as client:
        with pytest.raises(ttypes.MetaException, match="broke off during drop_table .* may or may not have been done"):
            client.drop_table("d", "t", True)
        assert client.getStatus() == 2
    assert len(calls) == 1


def test_a_connection_that_the_upstream_ended_while_idle_is_made_anew_also_for_a_change():
    ended = threading.Event()

    def serve(sock, number):
        sock.recv(1000)
        sock.sendall(reply("create_database"))
        if number == 0:
            sock.shutdown(socket.SHUT_RDWR)
            ended.set()
        else:
            sock.recv(1000)

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, Peer(server.address) as peer:
        assert peer.call(message("create_database"))[0] == TMessageType.REPLY
        assert ended.wait(60)
        until(lambda: not server._forwarder._links)
        assert peer.call(message("create_database"))[0] == TMessageType.REPLY


def test_half_an_answer_ends_the_clients_connection():
    def serve(sock, _):
        sock.recv(1000)
        sock.sendall(reply("get_all_databases", b"\x0f\0\0\x0b\0\0\0\x05\0\0\0\x01"))

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, Peer(server.address) as peer:
        peer.send(message("get_all_databases"))
        with pytest.raises(EOFError):
            peer.answer()
        until(lambda: not server.in_flight)


def test_an_upstream_that_is_silent_is_given_up():
    def serve(sock, _):
        while sock.recv(1000):
            pass

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, Peer(server.address) as peer:
        peer.send(message("get_all_databases"))
        link = until(lambda: next((one for one in list(server._forwarder._links.values()) if one.asked), None))
        link.moved -= 61
        kind, _, body = peer.answer()
        assert kind == TMessageType.REPLY
        assert b"no answer in time" in body


def test_an_answer_beyond_the_limit_ends_the_connection():
    catalog = Catalog()
    with serving(catalog) as behind:
        settings = UpstreamSettings(uris=("thrift://{}:{}".format(*behind.address),), max_reply_size=100_000)
        with serving(Own(), upstream=settings) as server, Peer(server.address) as peer:
            assert peer.call(message("get_table", text_field(1, "d") + text_field(2, "t") + b"\0"))[0]
            peer.send(message("get_all_tables", text_field(1, "d") + b"\0"))
            with pytest.raises(EOFError):
                peer.answer()


def test_a_client_that_leaves_takes_its_way_to_the_upstream_with_it():
    left = threading.Event()

    def serve(sock, _):
        while sock.recv(1000):
            pass
        left.set()

    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server:
        with Peer(server.address) as peer:
            peer.send(message("get_all_databases"))
            until(lambda: server._forwarder._links)
        assert left.wait(60)
        until(lambda: not server.in_flight and not server.connections)


def test_large_requests_are_forwarded_without_being_decoded():
    received = bytearray()

    def serve(sock, _):
        while len(received) < len(request):
            received.extend(sock.recv(1 << 20))
        sock.sendall(reply("create_table"))

    # A Table whose fields are of no kind that a Table has: decoding it would fail or lose them.
    strange = b"\x0c\0\x01" + b"".join(text_field(900 + number, "x" * 100) for number in range(5000)) + b"\0\0"
    request = message("create_table", strange)
    with raw_upstream(serve) as settings, serving(Own(), upstream=settings) as server, Peer(server.address) as peer:
        assert peer.call(request)[0] == TMessageType.REPLY
    assert bytes(received) == request
