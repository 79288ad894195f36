"""A socket with TLS: whatever the client takes or sends at a time, all bytes arrive, once and in order."""

import random
import socket
import ssl
import threading
from contextlib import closing, suppress

import pytest

from metastore.config import TlsSettings
from metastore.thrift_server.loop.tls_socket import TlsSocket
from metastore.tls.contexts import ClientSide, client_context, server_context
from tests.support.certificates import Authority

DATA = random.Random(1).randbytes(400_000)


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    return (server_context(TlsSettings(use_ssl=True, keystore=(str(authority.server()),))),
            client_context(ClientSide(truststore=(str(authority.path),))))


class Client:
    """The other side, in memory: what it sends and takes is up to the test."""

    def __init__(self, sock, context):
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.got = b""

    def shake(self):
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        self.sock.sendall(self.outgoing.read())

    def take(self, most=1 << 20):
        """Read at most so many encrypted bytes, and decrypt them."""
        try:
            self.incoming.write(self.sock.recv(most))
        except BlockingIOError:
            return
        with suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            while piece := self.tls.read(1 << 14):
                self.got += piece

    def encrypted(self, data):
        self.tls.write(data)
        return self.outgoing.read()


@pytest.fixture
def sides(contexts):
    """Yield (the server's socket, the client), through with the handshake; little fits into between."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for one in (ours, theirs):
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 13)
        tls, client = TlsSocket(contexts[0].wrap_socket(ours, server_side=True, do_handshake_on_connect=False)), Client(theirs, contexts[1])
        client.shake()
        while tls.handshake():
            client.incoming.write(theirs.recv(1 << 16))
            client.shake()
        with closing(tls):
            yield tls, client


def send(tls, data):
    with suppress(BlockingIOError):
        return tls.send(data)
    return 0


def receive(tls, size):
    with suppress(BlockingIOError):
        return tls.recv(size)
    return b""


@pytest.mark.parametrize("reads_between", [False, True])
def test_an_answer_that_is_taken_bit_by_bit(sides, reads_between):
    """Also when the rest of a record leaves while somebody reads, before its sender comes back."""
    tls, client = sides
    left = memoryview(DATA)
    sizes = random.Random(2)
    while left:
        left = left[send(tls, left):]
        client.take(sizes.choice([1, 100, 5000, 1 << 16]))
        if reads_between:
            with pytest.raises(BlockingIOError):
                tls.recv(1 << 14)
    while len(client.got) < len(DATA):
        client.take()
    assert client.got == DATA


def test_a_request_that_comes_bit_by_bit(sides):
    tls, client = sides
    sizes, got = random.Random(3), b""
    sent = b"".join(client.encrypted(DATA[start:start + 3000]) for start in range(0, 60_000, 3000))
    while sent:
        size = sizes.choice([1, 7, 100, 4000])
        client.sock.sendall(sent[:size])
        sent = sent[size:]
        got += receive(tls, sizes.choice([10, 1000, 1 << 14]))
    while len(got) < 60_000:
        got += receive(tls, 1000)
    assert got == DATA[:60_000]


def test_a_request_that_came_with_the_end_of_the_handshake(contexts):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        tls, client = TlsSocket(contexts[0].wrap_socket(ours, server_side=True, do_handshake_on_connect=False)), Client(theirs, contexts[1])
        with closing(tls):
            client.shake()
            assert tls.handshake()
            client.incoming.write(theirs.recv(1 << 16))
            client.tls.do_handshake()
            theirs.sendall(client.outgoing.read() + client.encrypted(b"hello"))
            assert tls.handshake() == 0
            assert tls.recv(100) == b"hello"
            with pytest.raises(BlockingIOError):
                tls.recv(100)


@pytest.mark.parametrize("farewell", [False, True])
def test_the_end(sides, farewell):
    tls, client = sides
    client.sock.sendall(client.encrypted(b"last"))
    if farewell:
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.unwrap()
        client.sock.sendall(client.outgoing.read())
    client.sock.shutdown(socket.SHUT_WR)
    assert tls.recv(1 << 14) == b"last"
    assert tls.recv(1 << 14) == b""


def test_somebody_who_changes_bytes_on_the_way_is_noticed(sides):
    tls, client = sides
    sent = bytearray(client.encrypted(b"x" * 100))
    sent[50] ^= 1
    client.sock.sendall(sent)
    with pytest.raises(ssl.SSLError, match="(?i)bad record mac|decryption failed"):
        tls.recv(1 << 14)


def test_threads_that_read_and_send_at_once(sides):
    tls, client = sides
    client.sock.setblocking(True)
    reader = threading.Thread(target=lambda: [client.take() for _ in iter(lambda: len(client.got) < len(DATA), False)])
    reader.start()
    left, got = memoryview(DATA), 0
    while left:
        left = left[send(tls, left):]
        got += len(receive(tls, 1 << 14))
    reader.join()
    assert (client.got, got) == (DATA, 0)
