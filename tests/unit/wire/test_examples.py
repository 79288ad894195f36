"""The messages of Hive's own Java classes, decoded by every path a message can take through the server."""

import random
from itertools import pairwise
from types import SimpleNamespace

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.transport.TTransport import TMemoryBuffer

from metastore.config import ServerSettings
from metastore.errors import MetaError
from metastore.thrift_server.loop.message_reader import Messages
from metastore.thrift_server.wire.codec import CODECS, OLDER_ARGUMENTS
from metastore.thrift_server.wire.interface import METHODS
from metastore.thrift_server.wire.protocol import BinaryProtocol, CompactProtocol
from tests.support.thrift_server import Peer, assert_equal, example_id, examples, serving

EXAMPLES = examples()
PROTOCOLS = {"binary": BinaryProtocol(), "compact": CompactProtocol()}
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=example_id)


def connection():
    return SimpleNamespace(received=b"", scanner=None, header=None)


def feed(messages, pieces):
    """Return the messages that `Messages` finds in data that arrives in these pieces."""
    client, found = connection(), []
    for piece in pieces:
        client.received = client.received + piece if client.received else piece
        while client.received and (message := messages.next(client)):
            found.append(message)
    assert not client.received
    return found


def test_there_are_as_many_examples_as_ever():
    assert len(EXAMPLES) == 227


@every_example
def test_whole_message(example):
    messages = Messages(PROTOCOLS[example["protocol"]], ServerSettings())
    (message,) = feed(messages, [example["data"]])
    assert message.header.method == example["method"]
    assert message.complaint == ""
    assert CODECS[example["method"]].unset(message.arguments) is None
    assert_equal(message.arguments, example["args"])


@every_example
def test_message_in_pieces(example):
    """The scanner finds the end, wherever the pieces are cut."""
    data = example["data"]
    messages = Messages(PROTOCOLS[example["protocol"]], ServerSettings())
    cuts = sorted(random.Random(example["seqid"]).sample(range(1, len(data)), min(7, len(data) - 1)))
    for ends in (range(1, len(data)), cuts):
        bounds = [0, *ends, len(data)]
        pieces = [bytearray(data[a:b]) for a, b in pairwise(bounds)]
        (message,) = feed(messages, pieces)
        assert_equal(message.arguments, example["args"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_all_messages_in_one_stream(protocol):
    chosen = [example for example in EXAMPLES if example["protocol"] == protocol]
    found = feed(Messages(PROTOCOLS[protocol], ServerSettings()), [bytearray(b"".join(e["data"] for e in chosen))])
    for message, example in zip(found, chosen, strict=True):
        assert_equal(message.arguments, example["args"])


@every_example
def test_framed_message(example):
    messages = Messages(PROTOCOLS[example["protocol"]], ServerSettings(framed=True))
    framed = len(example["data"]).to_bytes(4) + example["data"]
    (message,) = feed(messages, [framed])
    assert_equal(message.arguments, example["args"])


@every_example
def test_thrifts_own_decoder_in_pure_python_agrees(example):
    """Except for the messages of 2.3 that no generated decoder can read."""
    if example["version"] == "2.3.10" and example["method"] in OLDER_ARGUMENTS:
        pytest.xfail("the reason for the second field tables")
    protocol = {"binary": TBinaryProtocol, "compact": TCompactProtocol}[example["protocol"]]
    reader = protocol(TMemoryBuffer(example["data"]))
    name, _, _ = reader.readMessageBegin()
    arguments = getattr(METHODS[name], f"{name}_args")()
    reader.readStruct(arguments, arguments.thrift_spec)
    assert_equal(arguments, example["args"])


class Recorder:
    """Handlers for the methods of the examples that keep what they get."""


def keep(method):
    def handler(self, call, *args):
        self.got.append((call.method, args))
        raise MetaError("kept")

    handler.__name__ = method
    return handler


for each in {example["method"] for example in EXAMPLES}:
    setattr(Recorder, each, keep(each))


@pytest.mark.parametrize("framed", [False, True], ids=["unframed", "framed"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_through_the_server(protocol, framed):
    recorder, compact = Recorder(), protocol == "compact"
    recorder.got = []
    chosen = [example for example in EXAMPLES if example["protocol"] == protocol]
    with (
        serving(recorder, framed=framed, compact_protocol=compact) as server,
        Peer(server.address, framed=framed, compact=compact) as peer,
    ):
        answers = [peer.call(example["data"]) for example in chosen]
    assert [seqid for _, seqid, _ in answers] == [example["seqid"] for example in chosen]
    for (method, args), example in zip(recorder.got, chosen, strict=True):
        assert method == example["method"]
        names = [entry[2] for entry in CODECS[method].arguments_class.thrift_spec if entry]
        for name, value in zip(names, args, strict=True):
            assert_equal(value, example["args"].get(name), name)
