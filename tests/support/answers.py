"""Answers that are made of encoded structs, as clients read them."""

from thrift.protocol import fastbinary

from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore
from metastore.thrift_server.codec import CODECS
from metastore.thrift_server.protocol import BinaryProtocol, CompactProtocol
from metastore.thrift_server.source import Source

READERS = ((BinaryProtocol(), fastbinary.decode_binary), (CompactProtocol(), fastbinary.decode_compact))


def decoded(method, answer):
    """The result that clients read from an answer in pieces, in both protocols."""
    with answer.pieces as coming:
        pieces = list(coming)
    results = []
    for protocol, decode in READERS:
        before, after = protocol.around(CODECS[method], answer.whole, answer.kind, answer.length)
        body = b"".join((before, *(protocol.structs(answer.kind, piece) for piece in pieces), after))
        result = getattr(ThriftHiveMetastore, f"{method}_result")()
        source = Source(body, 0)
        decode(result, source, [type(result), type(result).thrift_spec])
        assert source.cstringio_buf.tell() == len(body)
        results.append(result.success)
    assert results[0] == results[1]
    return results[0]
