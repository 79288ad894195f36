"""A Thrift server in this process, and clients that speak bytes."""

import base64
import json
import socket
import struct
import threading
from contextlib import contextmanager
from pathlib import Path

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from metastore.config import ServerSettings
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.server import Server
from metastore.thrift_server.upstream.endpoint import Upstream

FACTS = Path(__file__).parent / "wire"


def facts():
    """Structs, enums, methods and constants of five versions of Hive, read from Hive's own classes."""
    return json.loads((FACTS / "union.json").read_text())


def examples():
    """Messages that Hive's own Java classes wrote, with their decoded arguments."""
    calls = json.loads((FACTS / "calls.json").read_text())
    for example in calls:
        example["data"] = base64.b64decode(example.pop("base64"))
        if example["version"] == "2.3.10":
            for name in ("tbl", "new_tbl"):  # its catName is where others have creationMetadata, and is skipped
                example["args"].get(name, {}).pop("catName", None)
    return calls


def example_id(example):
    return f"{example['version']}-{example['method']}-{example['protocol']}-{example['seqid']}"


ALSO_CALLED = {"isAcid": "isTransactional"}


def assert_equal(actual, expected, where="args"):
    """Compare a decoded value with the JSON form of the examples; declared defaults may be added."""
    if hasattr(actual, "thrift_spec"):
        expected = {ALSO_CALLED.get(name, name): value for name, value in expected.items()}
        defaults = {entry[2]: entry[4] for entry in actual.thrift_spec if entry}
        assert not expected.keys() - defaults.keys(), where
        for name, default in defaults.items():
            value = getattr(actual, name)
            if name in expected:
                assert_equal(value, expected[name], f"{where}.{name}")
            else:
                assert value == default, f"{where}.{name}"
    elif isinstance(expected, dict) and set(expected) == {"$binary"}:
        assert actual == base64.b64decode(expected["$binary"]), where
    elif isinstance(actual, dict):
        pairs = expected.items() if isinstance(expected, dict) else expected
        pairs = {tuple(key) if isinstance(key, list) else key: value for key, value in pairs}
        assert actual.keys() == pairs.keys(), where
        for key, value in pairs.items():
            assert_equal(actual[key], value, f"{where}[{key!r}]")
    elif isinstance(actual, set | frozenset):
        assert sorted(actual) == sorted(expected), where
    elif isinstance(actual, list | tuple):
        assert len(actual) == len(expected), where
        for i, value in enumerate(expected):
            assert_equal(actual[i], value, f"{where}[{i}]")
    else:
        assert actual == expected, where


@contextmanager
def serving(*concepts, upstream=None, limits=None, tls=None, **settings):
    """Serve these handler objects; yield the server with its address as ``server.address``.

    ``upstream``: UpstreamSettings of the metastore that gets all other calls; ``tls``: TlsSettings.
    """
    settings = ServerSettings(**{"host": "127.0.0.1", "port": 0, "worker_threads": 4, **settings})
    forwarded = CallStats("metastore_forwarded_call")
    server = Server(settings, handlers_of(*concepts), upstream=Upstream(upstream, settings) if upstream else None,
                    forwarded=forwarded, limits=limits, **({"tls": tls} if tls else {}))
    server.forwarded = forwarded
    server.address = server.start()
    try:
        yield server
    finally:
        server.drain(0.5)


def until(condition):
    """Wait until another thread has made something true."""
    pause = threading.Event()
    while not (value := condition()):
        pause.wait(0.001)
    return value


class Peer:
    """A socket to the server."""

    def __init__(self, address, *, compact=False, framed=False, timeout=60, source=None):
        """``source``: the address from which to connect."""
        self.sock = socket.create_connection(address, timeout=timeout, source_address=(source, 0) if source else None)
        self.protocol = TCompactProtocolAccelerated if compact else TBinaryProtocolAccelerated
        self.framed = framed
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def call(self, data):
        """Send a message, return (message type, seqid, body) of the answer."""
        self.send(len(data).to_bytes(4) + data if self.framed else data)
        return self.answer()

    def answer(self):
        """Return the next answer: (type, seqid, TApplicationException or the bytes of the result)."""
        while True:
            if self.received:
                parsed = self._parse()
                if parsed:
                    return parsed
            data = self.sock.recv(1 << 20)
            if not data:
                raise EOFError("the server closed the connection")
            self.received += data

    def _parse(self):
        data = self.received[4:] if self.framed else self.received
        buffer = TMemoryBuffer(data)
        protocol = self.protocol(buffer)
        try:
            _, kind, seqid = protocol.readMessageBegin()
            begin = buffer.cstringio_buf.tell()
            if kind == TMessageType.EXCEPTION:
                body = TApplicationException()
                body.read(protocol)
            else:
                protocol.skip(12)
        except EOFError:
            return None
        end = buffer.cstringio_buf.tell()
        if kind != TMessageType.EXCEPTION:
            body = data[begin:end]
        self.received = data[end:]
        return kind, seqid, body

    def closed(self):
        """Whether the server has closed the connection (waits for it)."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


def message(method, body=b"\0", seqid=1, kind=TMessageType.CALL):
    """Encode a call in the binary protocol."""
    name = method.encode()
    return struct.pack(">HBBi", 0x8001, 0, kind, len(name)) + name + seqid.to_bytes(4) + body


def text_field(number, text):
    """Encode a string field in the binary protocol."""
    raw = text.encode() if isinstance(text, str) else text
    return b"\x0b" + number.to_bytes(2) + len(raw).to_bytes(4) + raw
