"""Descriptors of one message that are alike, beside what Thrift's own decoder makes of each."""

from itertools import pairwise, permutations

import pytest

from benchmarks.load import request
from metastore.config import ServerSettings
from metastore.thrift_gen.hive_metastore.ttypes import FieldSchema, Partition, SerDeInfo, StorageDescriptor
from metastore.thrift_server.convert.partitions import drafts_of
from metastore.thrift_server.loop.message_reader import Messages
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol, CompactProtocol


def sd(location, comment="", columns=3, **fields):
    return StorageDescriptor([FieldSchema(f"c{n}", "int", comment) for n in range(columns)], location,
                             serdeInfo=SerDeInfo(None, "lib", {"a": "b"}), **fields)


UNLIKE = {
    "usual": sd("file:/w/t/k=1"), "no location": sd(None), "empty location": sd(""), "no columns": sd("file:/w/t", columns=0),
    "null columns": StorageDescriptor(location="file:/w"), "nothing": StorageDescriptor(), "no descriptor": None,
    "another comment": sd("file:/w/t/k=2", "x"), "bucketed": sd("file:/w/t/k=3", numBuckets=4, bucketCols=["c1"]),
    "a location as comment": sd("file:/w/t/k=4", "\x0b\0\x02\0\0\0\x01a"), "not ASCII": sd("file:/w/t/k=\u00e4\U0001f600"),
}


def decoded(protocol, *descriptors):
    message = request("add_partitions", [Partition([str(n)], "d", "t", 1, 2, each, {"k": "v"})
                                         for n, each in enumerate(descriptors)])
    if isinstance(protocol, CompactProtocol):
        args = CODECS["add_partitions"].arguments
        message = b"\x82\x21\x01\x0eadd_partitions" + protocol._encode(protocols[0].decode(CODECS["add_partitions"], message, 26)[0], args)
    header = protocol.header(message, 0)
    plain, _ = protocol.decode(CODECS["add_partitions"], message, header.end)
    received = Messages(protocol, ServerSettings()).decoded(header, message)
    assert received.complaint == ""
    assert received.arguments == plain
    return received.arguments.new_parts


protocols = (BinaryProtocol(), CompactProtocol())


@pytest.mark.parametrize("protocol", protocols)
def test_what_is_shared_is_what_was_sent(protocol):
    for three in permutations(UNLIKE.values(), 3):
        decoded(protocol, *(each for each in three for _ in range(2)), three[0])


def test_only_the_location_may_differ():
    parts = decoded(protocols[0], sd("a"), sd("b"), sd("\u00e4"), sd("a", "x"), sd("a", "x"), sd("a"))
    assert [one.sd.cols is other.sd.cols for one, other in pairwise(parts)] == [True, True, False, True, False]
    assert len({id(draft.sd) for draft in drafts_of(parts)}) == 3


def test_the_next_message_is_not_alike():
    messages = Messages(protocols[0], ServerSettings())
    message = request("add_partitions", [Partition(["1"], "d", "t", 1, 2, sd("a"), {})])
    header = protocols[0].header(message, 0)
    one, other = (messages.decoded(header, message).arguments.new_parts[0].sd for _ in range(2))
    assert one == other
    assert one.cols is not other.cols
