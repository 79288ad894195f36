"""TLS on the Thrift port: who gets in, who is who, and that handshakes of strangers cost others nothing."""

import contextlib
import os
import socket
import ssl
import threading
from types import SimpleNamespace

import pytest
import structlog
from cryptography import x509

from metastore.client import MetastoreClient, MetastoreUnreachableError
from metastore.config import ServerSettings, TlsSettings
from metastore.errors import InvalidInputError
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.auth.access import Everybody, Identified
from metastore.thrift_server.dispatch.call import immediate
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.loop.tls_socket import TlsSocket
from metastore.thrift_server.server import Server
from metastore.tls.contexts import ClientSide, client_context, server_context
from tests.support.certificates import Authority
from tests.support.thrift_server import serving as plainly_serving
from tests.support.thrift_server import until


class Echo:
    """Answers in each of the ways of running; tells who asks."""

    def __init__(self):
        self.calls = []

    @immediate
    def set_ugi(self, call, user_name, group_names):
        call.connection.user = call.connection.identity.user or user_name
        return []

    def get_all_databases(self, call):
        return [str(call.connection.identity.user), str(call.connection.user)]

    def get_databases(self, call, pattern):
        return [pattern] * 1000


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def serving(authority):
    """Yield a function that serves with TLS settings and gives the server with its address."""
    with contextlib.ExitStack() as running:
        def serve(access=None, **settings):
            keystore = settings.pop("keystore", None) or str(authority.server())
            tls = TlsSettings(use_ssl=True, keystore=(keystore,), **settings)
            handlers = handlers_of(Echo(), Fb303Handlers(CallStats(), 1))
            server = Server(ServerSettings(host="127.0.0.1", port=0, worker_threads=4), handlers, tls=tls,
                            access=access or Everybody())
            server.address = server.start()
            server.uri = f"thrift://127.0.0.1:{server.address[1]}"
            running.callback(server.drain, 0.5)
            return server

        yield serve


def connect(server, authority, **settings):
    settings = {"truststore": (str(authority.path),), **settings}
    return MetastoreClient(server.uri, user="ann", timeout_s=60, tls=ClientSide(**settings))


def test_calls_of_every_size_go_through(serving, authority):
    server = serving()
    with connect(server, authority) as client:
        assert client.getStatus() == 2
        for size in (1, 17, 3_000):
            text = "x" * size
            assert client.get_databases(text) == [text] * 1000


def test_many_clients_at_once(serving, authority):
    server = serving()
    failed = []

    def work(number):
        try:
            for _ in range(5):
                with connect(server, authority) as client:
                    assert client.get_databases(str(number)) == [str(number)] * 1000
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    until(lambda: server.connections == 0)


def test_a_client_without_tls_gets_no_answer_and_hurts_nobody(serving, authority):
    server = serving()
    with socket.create_connection(server.address, timeout=60) as plain:
        plain.sendall(b"\x80\x01\x00\x01\x00\x00\x00\x09getStatus\x00\x00\x00\x01\x00")
        said = b""
        with contextlib.suppress(ConnectionError):
            while data := plain.recv(100):
                said += data
    assert b"getStatus" not in said
    assert server.failed_handshakes == 1
    with connect(server, authority) as client:
        assert client.getStatus() == 2


def test_a_server_of_another_authority_is_not_believed(serving, authority, tmp_path):
    server = serving()
    other = Authority(tmp_path, "Other CA")
    with connect(server, other) as client, pytest.raises(MetastoreUnreachableError, match="TLS failed.*certificate"):
        client.getStatus()


def test_a_certificate_of_another_host_is_not_believed_unless_told(serving, authority):
    server = serving(keystore=str(authority.issue("elsewhere", "elsewhere.example")))
    with connect(server, authority) as client, pytest.raises(MetastoreUnreachableError, match="IP address mismatch"):
        client.getStatus()
    with connect(server, authority, verify_hostname=False) as client:
        assert client.getStatus() == 2


def test_the_user_is_the_certificates(serving, authority):
    server = serving(Identified(), client_certificates="required", truststore=(str(authority.path),))
    with connect(server, authority, keystore=(str(authority.issue("etl", "etl@example.com")),)) as client:
        assert client.get_all_databases() == ["etl", "etl"]
    server = serving(Identified(), client_certificates="required", truststore=(str(authority.path),), client_user="san")
    with connect(server, authority, keystore=(str(authority.directory / "etl.pem"),)) as client:
        assert client.get_all_databases() == ["etl@example.com", "etl@example.com"]


@pytest.mark.parametrize("wanted", ["wanted", "required"])
def test_who_signs_the_clients_certificates_is_said(serving, wanted):
    """Else any of the authorities that the operating system trusts names users: 144 of them on Debian."""
    with pytest.raises(InvalidInputError, match=f"certificates is {wanted}, but hive.metastore.truststore.path is not set"):
        serving(client_certificates=wanted)


def test_a_certificate_with_two_users_lets_nobody_in(serving, authority):
    server = serving(client_certificates="wanted", truststore=(str(authority.path),))
    both = authority.issue("etl", also=["root"], file="both.pem")
    with connect(server, authority, keystore=(str(both),)) as client, pytest.raises(MetastoreUnreachableError):
        client.get_all_databases()
    until(lambda: server.refused_logins == 1)


def test_wanted_certificates_may_be_absent(serving, authority):
    server = serving(client_certificates="wanted", truststore=(str(authority.path),))
    with connect(server, authority) as client:
        assert client.get_all_databases() == ["None", "ann"]
    with connect(server, authority, keystore=(str(authority.issue("etl")),)) as client:
        assert client.get_all_databases() == ["etl", "etl"]


def test_without_a_required_certificate_nobody_gets_in(serving, authority, tmp_path):
    server = serving(Identified(), client_certificates="required", truststore=(str(authority.path),))
    stranger = Authority(tmp_path, "Other CA").issue("etl", file="stranger.pem")
    for settings in ({}, {"keystore": (str(stranger),)}):
        with connect(server, authority, **settings) as client, pytest.raises(MetastoreUnreachableError):
            client.get_all_databases()
    until(lambda: server.failed_handshakes >= 2)


def test_a_certificate_that_names_nobody_may_call_nothing(serving, authority):
    server = serving(Identified(), client_certificates="required", truststore=(str(authority.path),))
    nameless = authority.issue("", "10.0.0.1", file="nameless.pem")
    with connect(server, authority, keystore=(str(nameless),)) as client:
        with pytest.raises(client.types.MetaException, match="get_all_databases is refused"):
            client.get_all_databases()
        with pytest.raises(client.types.MetaException, match="names no user"):
            client.get_all_databases()


def test_renewed_certificates_are_taken_up(serving, authority, monkeypatch):
    monkeypatch.setattr("metastore.tls.contexts._LOOK_EVERY_SECONDS", 0)
    path = authority.server(file="renewed.pem")
    server = serving(keystore=str(path))
    with connect(server, authority) as kept:
        assert kept.getStatus() == 2
        before = peer_certificate(server, authority)
        fresh = authority.server(file="fresh.pem")
        fresh.replace(path)
        after = peer_certificate(server, authority)
        assert after != before
        assert server.certificate_expires == x509.load_der_x509_certificate(after).not_valid_after_utc.timestamp()
        assert kept.getStatus() == 2
        path.write_text("half written")
        assert peer_certificate(server, authority) == after


def peer_certificate(server, authority):
    context = client_context(ClientSide(truststore=(str(authority.path),)))
    with socket.create_connection(server.address, timeout=60) as sock, \
            context.wrap_socket(sock, server_hostname="localhost") as tls:
        return tls.getpeercert(binary_form=True)


def test_stalled_handshakes_cost_others_nothing_and_end(serving, authority):
    server = serving()
    stalled = [socket.create_connection(server.address, timeout=60) for _ in range(100)]
    hello = client_hello()
    for number, sock in enumerate(stalled):
        sock.sendall(hello[:number % len(hello)])
    with connect(server, authority) as client:
        for _ in range(20):
            assert client.getStatus() == 2
    server._connections.now += 11  # a second of the loop later it looks at them
    for connection in server._connections:
        connection.active -= 11
    until(lambda: server.connections == 0)
    assert server.failed_handshakes == 100
    for sock in stalled:
        sock.close()


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_a_client_that_leaves_in_its_handshake(serving, authority):
    server = serving()
    for _ in range(20):
        with socket.create_connection(server.address, timeout=60) as sock:
            sock.sendall(client_hello())
    until(lambda: server.failed_handshakes == 20 and server.connections == 0)
    with connect(server, authority) as client:
        assert client.getStatus() == 2


def test_garbage_that_comes_with_the_end_of_a_handshake_ends_its_connection_only(serving, authority):
    server = serving()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = client_context(ClientSide(truststore=(str(authority.path),)))
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(server.address, timeout=60) as sock:
        finished = False
        while not finished:
            try:
                tls.do_handshake()
                finished = True
                tls.write(b"GET / HTTP/1.1\r\n" * 100)  # leaves in one piece with the client's last word
            except ssl.SSLWantReadError:
                pass
            sock.sendall(outgoing.read())
            if not finished:
                incoming.write(sock.recv(1 << 16))
        until(lambda: server.connections == 0)
    with connect(server, authority) as client:
        assert client.getStatus() == 2


def test_a_certificate_that_cannot_be_read_ends_its_connection_only(serving, authority, monkeypatch):
    server = serving()
    with monkeypatch.context() as patch:
        patch.setattr("metastore.thrift_server.loop.tls_socket.of_certificate", lambda *_: 1 / 0)
        with connect(server, authority) as client, pytest.raises(MetastoreUnreachableError):
            client.getStatus()
        until(lambda: server.failed_handshakes and server.connections == 0)
    with connect(server, authority) as client:
        assert client.getStatus() == 2


def test_a_client_that_says_no_more_in_its_handshake(serving, authority):
    server = serving()
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(client_hello()[:100])
        sock.shutdown(socket.SHUT_WR)
        ends_here(sock)
    until(lambda: server.failed_handshakes == 1 and server.connections == 0)


def test_a_handshake_that_comes_byte_by_byte_has_no_more_time(serving, monkeypatch):
    steps, begun, step = [], set(), TlsSocket.handshake

    def counted(tls, **how):
        waits_for = step(tls, **how)
        steps.append(waits_for)  # only now: what is sent next is for the next step
        return waits_for

    monkeypatch.setattr(TlsSocket, "handshake", counted)
    server = serving()
    with socket.create_connection(server.address, timeout=60) as sock:
        for number, byte in enumerate(client_hello()[:20], 1):
            sock.sendall(bytes([byte]))
            until(lambda: len(steps) >= number)  # noqa: B023 - called at once
            [connection] = server._connections
            begun.add(connection.active)
        assert len(begun) == 1
        connection.active -= 11
        ends_here(sock)
    assert server.failed_handshakes == 1


def test_a_greeting_of_megabytes_is_not_waited_for(serving, authority):
    server = serving()
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff" + bytes((1 << 14) - 4))
        ends_here(sock)
    until(lambda: server.failed_handshakes == 1)
    with connect(server, authority) as client:
        assert client.getStatus() == 2


def test_tls_where_there_is_none():
    stats = CallStats()
    with plainly_serving(Fb303Handlers(stats, 1)) as server:
        with structlog.testing.capture_logs() as logs, socket.create_connection(server.address, timeout=60) as sock:
            sock.sendall(client_hello())
            ends_here(sock)
        assert [line["event"] for line in logs] == ["connection_closed_malformed"]
        with MetastoreClient("thrift://{}:{}".format(*server.address)) as client:
            assert client.getStatus() == 2


def ends_here(sock):
    """Whatever it says before, the server closes the connection."""
    with contextlib.suppress(ConnectionError):
        while sock.recv(1000):
            pass


def test_handshakes_are_not_begun_anew(authority):
    assert server_context(TlsSettings(use_ssl=True, keystore=(str(authority.server()),))).options & ssl.OP_NO_RENEGOTIATION


def test_the_log_says_why_somebody_does_not_get_in(serving, authority):
    """Beside others who fail at the same time for other reasons."""
    server = serving(Identified(), client_certificates="required", truststore=(str(authority.path),))
    ended = authority.issue("old", file="old.pem", ended=True)
    with structlog.testing.capture_logs() as logs:
        for settings in ({}, {"keystore": (str(ended),)}, {}, {"keystore": (str(ended),)}):
            with connect(server, authority, **settings) as client, pytest.raises(MetastoreUnreachableError):
                client.get_all_databases()
        until(lambda: server.failed_handshakes >= 4)
    assert {line["reason"] for line in logs if line["event"] == "tls_handshake_failed"} >= {
        "certificate has expired", "peer did not return a certificate"}


def test_old_protocols_are_not_spoken(serving, authority):
    server = serving(forbidden_protocols=("TLSv1.3",))
    assert version_spoken(server, authority) == "TLSv1.2"
    server = serving(forbidden_protocols=("TLSv1.2",))
    assert version_spoken(server, authority) == "TLSv1.3"


def version_spoken(server, authority):
    context = client_context(ClientSide(truststore=(str(authority.path),)))
    with socket.create_connection(server.address, timeout=60) as sock, \
            context.wrap_socket(sock, server_hostname="localhost") as tls:
        return tls.version()


def test_key_stores_that_cannot_be_used_stop_the_start(authority, tmp_path):
    for settings, said in [
            ({}, "keystore.path is not set"),
            ({"keystore": (str(tmp_path / "none.pem"),)}, "cannot be read"),
            ({"keystore": (str(authority.path),)}, "has no private key"),
            ({"keystore": (str(authority.server()),), "ciphers": "NOTHING"}, "names no cipher"),
            ({"keystore": (str(authority.server()),), "forbidden_protocols": ("TLSv1.2", "TLSv1.3")}, "nothing is left"),
            ({"keystore": (str(authority.path), str(authority.server()))}, "Is its first certificate that of its key")]:
        with pytest.raises(InvalidInputError, match=said):
            server_context(TlsSettings(use_ssl=True, **settings))


def test_no_private_key_is_left_in_a_file(authority, monkeypatch):
    opened = []
    monkeypatch.setattr(os, "close", lambda handle, close=os.close: (opened.append(handle), close(handle))[1])
    server_context(TlsSettings(use_ssl=True, keystore=(str(authority.server()),)))
    assert len(opened) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_the_answer_waits_for_a_slow_reader(serving, authority):
    server = serving()
    context = client_context(ClientSide(truststore=(str(authority.path),)))
    ours, size = SimpleNamespace(seen=0), 20_000
    with socket.create_connection(server.address, timeout=60) as sock, \
            context.wrap_socket(sock, server_hostname="localhost") as tls:
        tls.sendall(b"\x80\x01\x00\x01\x00\x00\x00\rget_databases\x00\x00\x00\x01"
                    b"\x0b\x00\x01" + size.to_bytes(4) + b"y" * size + b"\x00")
        with connect(server, authority) as other:
            assert other.getStatus() == 2
        while ours.seen < size * 1000:
            ours.seen += tls.recv(1 << 16).count(b"y")
    assert ours.seen == size * 1000
