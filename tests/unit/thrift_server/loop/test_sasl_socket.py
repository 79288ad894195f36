"""The negotiation and the frames, with a mechanism that takes one word; every cut and every wrong message."""

import contextlib
import socket
import struct
import threading

import pytest

from metastore.errors import AccessDeniedError
from metastore.thrift_server.auth import sasl
from metastore.thrift_server.auth.identity import NOBODY, Identity, IdentityProof
from metastore.thrift_server.auth.sasl import LARGEST_PAYLOAD, NegotiationStatus, Unprotected
from metastore.thrift_server.loop import sasl_socket
from metastore.thrift_server.loop.sasl_socket import SaslSocket
from metastore.thrift_server.server import Server
from tests.support.thrift_server import until

START, OK, BAD, ERROR, COMPLETE = NegotiationStatus


class Word(Unprotected):
    """Takes the word "please" at its second message."""

    waits = True

    def __init__(self):
        self.asked = False

    def step(self, response):
        if not self.asked:
            self.asked = True
            return b"say the word"
        if response != b"please":
            raise AccessDeniedError("That was not the word")
        self.identity = Identity("ann", IdentityProof.PASSWORD)
        return b"welcome"


class Reversed(Word):
    """Protects frames by turning them round."""

    protects = True

    def wrap(self, data):
        return data[::-1]

    def unwrap(self, data):
        return data[::-1]


def message(status, payload):
    return bytes((status,)) + struct.pack(">I", len(payload)) + payload


def frame(data):
    return struct.pack(">I", len(data)) + data


LOGIN = message(START, b"WORD") + message(OK, b"") + message(COMPLETE, b"please")


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(10)
    with ours, theirs:
        yield ours, theirs


def served(ours, mechanism=Word, largest=1000):
    return SaslSocket(ours, {"WORD": lambda _: mechanism()}, largest, "10.0.0.1:7")


@pytest.mark.parametrize("mechanism", [Word, Reversed])
@pytest.mark.parametrize("cut", [1, 2, 3, 1000])
def test_a_login_and_frames_in_pieces_of_any_size(pair, mechanism, cut):
    ours, theirs = pair
    end = served(ours, mechanism)
    content = frame(b"abc"[::-1] if mechanism is Reversed else b"abc") + frame(b"d")
    data = LOGIN + content
    got, done = b"", 1
    for at in range(0, len(data), cut):
        theirs.sendall(data[at:at + cut])
        if done:
            done = end.handshake()
        if not done:
            with contextlib.suppress(BlockingIOError):
                got += end.recv(100)
    assert got == b"abcd"
    assert end.identity("subject").user == "ann"
    assert theirs.recv(1000) == message(OK, b"say the word") + message(COMPLETE, b"welcome")
    assert end.send(b"12") == 2
    assert theirs.recv(1000) == frame(b"21" if mechanism is Reversed else b"12")


def test_a_step_that_waits_is_for_another_thread(pair):
    ours, theirs = pair
    end = served(ours)
    theirs.sendall(LOGIN)
    assert end.handshake(may_wait=False) == sasl_socket.WAITS
    assert end.handshake() == 0


@pytest.mark.parametrize(("sent", "reason"), [
    (message(START, b"MD5"), "not offered here; offered: WORD"),
    (message(START, b"WORD") + message(OK, b"") + message(OK, b"now"), "That was not the word"),
    (message(START, b"WORD") + message(BAD, b"no"), "ended the negotiation"),
    (message(START, b"WORD") + message(START, b"WORD"), "ended the negotiation"),
    (message(START, b"WORD") + message(9, b""), "ended the negotiation"),
    (bytes((START,)) + struct.pack(">I", LARGEST_PAYLOAD + 1), "are enough"),
    (bytes((START,)) + b"\xff\xff\xff\xff", "are enough"),
])
def test_a_wrong_message_ends_it_and_says_why(pair, sent, reason):
    ours, theirs = pair
    end = served(ours)
    theirs.sendall(sent)
    with pytest.raises(AccessDeniedError, match=reason):
        end.handshake()
    said = theirs.recv(1000)
    assert bytes((ERROR,)) in said
    assert reason.encode() in said
    assert end.identity("subject") == NOBODY


def test_a_negotiation_without_end_is_ended(pair):
    class Never(Word):
        def step(self, _):
            return b"more"

    ours, theirs = pair
    theirs.sendall(message(START, b"WORD") + message(OK, b"") * 50)
    with pytest.raises(AccessDeniedError, match="too many messages"):
        served(ours, Never).handshake()


def test_a_frame_that_is_too_large_ends_the_connection(pair):
    ours, theirs = pair
    end = served(ours)
    theirs.sendall(LOGIN + struct.pack(">I", 1001))
    assert end.handshake() == 0
    with pytest.raises(ConnectionAbortedError, match="at most 1000"):
        end.recv(100)


def test_who_leaves_in_the_middle(pair):
    ours, theirs = pair
    end = served(ours)
    theirs.sendall(LOGIN[:9])
    assert end.handshake() > 0
    theirs.close()
    with pytest.raises(ConnectionAbortedError):
        end.handshake()


def test_much_data_to_a_slow_client(pair):
    ours, theirs = pair
    end = served(ours, Reversed)
    theirs.sendall(LOGIN)
    assert end.handshake() == 0
    assert theirs.recv(100)
    data, got = bytes(range(256)) * 12_000, bytearray()

    def read():
        while len(got) < len(data) + 4 * 12:
            got.extend(theirs.recv(70_000))

    reader = threading.Thread(target=read)
    reader.start()
    sent = 0
    while sent < len(data):
        with contextlib.suppress(BlockingIOError):
            sent += end.send(memoryview(data)[sent:])
    reader.join(20)
    content = b""
    while got:
        size = int.from_bytes(got[:4], "big")
        content += bytes(got[4:4 + size])[::-1]
        del got[:4 + size]
    assert content == data


@pytest.mark.parametrize("first", [b"\x80\x01\x00\x01", b"\x00\x00\x00\x20", b"\x82\x21"])
def test_a_client_that_negotiates_nothing_is_nobody(pair, first, monkeypatch):
    """Unless the kernel says that it is a process of the server's own user."""
    ours, theirs = pair
    end = served(ours)
    theirs.sendall(first)
    assert end.handshake() == 0
    assert end.identity("subject") == NOBODY
    assert end.recv(100) == first
    theirs.sendall(b"more")
    assert end.recv(100) == b"more"
    assert end.send(b"answer") == 6
    assert theirs.recv(100) == b"answer"
    own = Identity("me", IdentityProof.KERNEL)
    monkeypatch.setattr(sasl_socket, "of_own_user", {"10.0.0.1:7": own}.get)
    assert end.identity("subject") == own


def test_others_get_in_while_logins_hang(serving_words):
    """Four that hang in a database or a directory hold their own threads only."""
    server, hang = serving_words
    clients = [socket.create_connection(server.address) for _ in range(6)]
    try:
        for client in clients:
            client.sendall(message(START, b"SLOW") + message(OK, b"") + message(OK, b"please"))
        until(lambda: hang.waiting >= 4)
        with socket.create_connection(server.address, timeout=10) as quick:
            quick.sendall(message(START, b"QUICK") + message(OK, b"") + message(OK, b"please"))
            assert quick.recv(1000)
    finally:
        hang.over.set()
        for client in clients:
            client.close()


class Hang:
    """What hangs, until it is over."""

    def __init__(self):
        self.over, self.waiting = threading.Event(), 0

    def slow(self):
        hang = self

        class Slow(Word):
            def step(self, response):
                if self.asked:
                    hang.waiting += 1
                    hang.over.wait(30)
                return super().step(response)

        return Slow()


class Quick(Word):
    """Waits for nobody."""

    waits = False


@pytest.fixture
def serving_words():
    from metastore.config import ServerSettings

    hang = Hang()
    server = Server(ServerSettings(port=0), {}, mechanisms={"SLOW": lambda _: hang.slow(), "QUICK": lambda _: Quick(), "WORD": lambda _: Word()})
    server.address = server.start()
    yield server, hang
    server.drain(1)


def test_a_refused_login_is_counted(serving_words):
    server, _ = serving_words
    with socket.create_connection(server.address, timeout=10) as client:
        client.sendall(message(START, b"WORD") + message(OK, b"") + message(OK, b"wrong"))
        text = b""
        while piece := client.recv(1000):
            text += piece
    assert sasl.refusal("That was not the word") in text
    until(lambda: server.refused_logins == 1)
