"""Answers whose lists come as bytes, as clients read them."""

from thrift.protocol import fastbinary

from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.compaction import CompactionHandlers
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.thrift_server.handlers.txns import TxnHandlers
from metastore.thrift_server.wire.codec import CODECS, MessageSource
from metastore.thrift_server.wire.protocol import BinaryProtocol, CompactProtocol

READERS = ((BinaryProtocol(), fastbinary.decode_binary), (CompactProtocol(), fastbinary.decode_compact))


def decoded(method, answer):
    """Return the result that clients read from an answer in pieces, the same in both protocols."""
    with answer.pieces as coming:
        pieces = list(coming)
    results = []
    for protocol, decode in READERS:
        before, after = protocol.around(CODECS[method], answer.whole, answer.kind, answer.length)
        body = b"".join((before, *(protocol.elements(answer.kind, piece) for piece in pieces), after))
        result = getattr(ThriftHiveMetastore, f"{method}_result")()
        source = MessageSource(body, 0)
        decode(result, source, [type(result), type(result).thrift_spec])
        assert source.cstringio_buf.tell() == len(body)
        results.append(result.success)
    assert results[0] == results[1]
    return results[0]


def shown_locks(locks, **filters):
    """Return the locks that clients read of show_locks."""
    request = ttypes.ShowLocksRequest(**filters)
    return decoded("show_locks", LockHandlers(locks).show_locks(Call("show_locks", (request,), None), request)).locks


def shown_txns(txns):
    """Return the mark and the transactions that clients read of get_open_txns_info."""
    answer = decoded("get_open_txns_info", TxnHandlers(txns, None, None).get_open_txns_info(None))
    return answer.txn_high_water_mark, answer.open_txns


def shown_compactions(service, request):
    """Return the result that clients read of show_compact."""
    handlers = CompactionHandlers(service, None)
    return decoded("show_compact", handlers.show_compact(Call("show_compact", (request,), None), request))
