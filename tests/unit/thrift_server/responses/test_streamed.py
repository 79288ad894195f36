"""Answers that are sent while they are being read: to clients that keep up, that do not, and that leave."""

import threading
from contextlib import ExitStack, contextmanager

import pytest
from thrift.protocol import fastbinary
from thrift.Thrift import TMessageType

from metastore.db.pieces import Pieces
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.responses.streamed import InPieces, texts
from metastore.thrift_server.wire.codec import MessageSource
from tests.support.answers import decoded
from tests.support.thrift_server import Peer, message, serving, until
from tests.unit.thrift_server.test_server import ALIVE, GET_STATUS, Stats

SPEC = [ttypes.Partition, ttypes.Partition.thrift_spec]
BIG = 1 << 20


def partition(number, size):
    return ttypes.Partition(values=[str(number)], parameters={"x": "y" * size})


class Lists:
    """get_partitions of as many partitions as are asked for, each a piece of its own."""

    def __init__(self, size=10, fails_at=None):
        self.size, self.fails_at = size, fails_at
        self.read, self.ended = 0, threading.Event()

    def get_partitions(self, call, db_name, tbl_name, max_parts):
        @contextmanager
        def held():
            try:
                yield self._pieces(max_parts)
            finally:
                self.ended.set()

        return InPieces(lambda partitions: partitions, ttypes.Partition, max_parts, held())

    def _pieces(self, count):
        for number in range(count):
            if number == self.fails_at:
                raise ValueError("the database went away")
            self.read += 1
            yield fastbinary.encode_binary(partition(number, self.size), SPEC)


def asked(count):
    """get_partitions of so many."""
    arguments = ThriftHiveMetastore.get_partitions_args(db_name="d", tbl_name="t", max_parts=count)
    spec = [type(arguments), arguments.thrift_spec]
    return message("get_partitions", fastbinary.encode_binary(arguments, spec))


def read(answer, decode=fastbinary.decode_binary):
    """Return the partitions of an answer."""
    kind, _, body = answer
    assert kind == TMessageType.REPLY
    result = ThriftHiveMetastore.get_partitions_result()
    decode(result, MessageSource(body, 0), [type(result), type(result).thrift_spec])
    return result.success


@pytest.mark.parametrize("size", [10, BIG])
def test_a_client_that_keeps_up_gets_all_of_it(size):
    with serving(Lists(size)) as server, Peer(server.address) as peer:
        for count in (0, 1, 2, 9):
            assert read(peer.call(asked(count))) == [partition(number, size) for number in range(count)]


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("compact", [False, True])
def test_every_client_reads_the_same(compact, framed):
    settings = {"framed": framed, "compact_protocol": compact}
    decode, encode = ((fastbinary.decode_compact, fastbinary.encode_compact) if compact
                      else (fastbinary.decode_binary, fastbinary.encode_binary))
    arguments = ThriftHiveMetastore.get_partitions_args("d", "t", 0)
    with serving(Lists(100), **settings) as server, Peer(server.address, compact=compact, framed=framed) as peer:
        for count in (0, 1, 2, 14, 15, 16, 127, 128, 300):  # where lengths take another form
            arguments.max_parts = count
            spec = [type(arguments), arguments.thrift_spec]
            body = encode(arguments, spec)
            asking = b"\x82\x21\x01\x0eget_partitions" + body if compact else message("get_partitions", body)
            assert read(peer.call(asking), decode) == [partition(number, 100) for number in range(count)]


def test_every_client_reads_the_same_texts():
    for count in (0, 1, 14, 15, 16, 127, 128, 300):
        names = ["ä" * number for number in range(count)]
        encoded = [len(name.encode()).to_bytes(4) + name.encode() for name in names]
        pieces = Pieces(count, iter((b"".join(encoded[:3]), b"".join(encoded[3:]))), ExitStack())
        assert decoded("get_partition_names", texts(pieces)) == names


def test_a_framed_answer_that_cannot_be_read_to_its_end_is_an_error_and_the_connection_goes_on():
    with serving(Lists(10, fails_at=2), framed=True) as server, Peer(server.address, framed=True) as peer:
        assert peer.call(asked(5))[0] == TMessageType.EXCEPTION
        assert len(read(peer.call(asked(2)))) == 2


def test_a_client_that_does_not_read_keeps_neither_a_thread_nor_what_the_answer_is_read_from():
    lists = Lists(BIG)
    with serving(lists, Fb303Handlers(Stats(), 1), worker_threads=1) as server, Peer(server.address) as slow:
        slow.send(asked(40))
        assert lists.ended.wait(60)
        with Peer(server.address) as other:
            assert len(read(other.call(asked(3)))) == 3
            assert other.call(GET_STATUS) == (TMessageType.REPLY, 1, ALIVE)
        assert read(slow.answer()) == [partition(number, BIG) for number in range(40)]
        assert slow.call(GET_STATUS) == (TMessageType.REPLY, 1, ALIVE)


def test_a_client_that_leaves_in_the_middle_ends_it():
    lists = Lists(BIG)
    with serving(lists, Fb303Handlers(Stats(), 1)) as server:
        with Peer(server.address) as peer:
            peer.send(asked(40))
            peer.sock.recv(1)
        assert lists.ended.wait(60)
        until(lambda: not server.connections and not server.in_flight)


def test_what_fails_before_anything_is_sent_is_an_answer():
    lists = Lists(fails_at=0)
    with serving(lists, Fb303Handlers(Stats(), 1)) as server, Peer(server.address) as peer:
        _, _, error = peer.call(asked(3))
        assert "the database went away" in error.message
        assert lists.ended.is_set()
        assert peer.call(GET_STATUS) == (TMessageType.REPLY, 1, ALIVE)


def test_what_fails_in_the_middle_ends_the_connection_and_no_other():
    lists = Lists(BIG, fails_at=20)
    with serving(lists, Fb303Handlers(Stats(), 1)) as server, Peer(server.address) as peer, Peer(server.address) as other:
        with pytest.raises(EOFError):
            peer.call(asked(40))
        assert lists.ended.is_set()
        assert other.call(GET_STATUS) == (TMessageType.REPLY, 1, ALIVE)
        assert ("get_partitions", "INTERNAL_ERROR") in server.stats.cells()
