"""Replies that must suit clients of several versions at once."""

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TMemoryBuffer

from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol, CompactProtocol

BOTH = pytest.mark.parametrize(
    ("ours", "thrifts"), [(BinaryProtocol(), TBinaryProtocol), (CompactProtocol(), TCompactProtocol)]
)


def raw_fields(reader):
    """Every field of the next struct, as (id, wire type, value), repeats and all."""
    found = []
    reader.readStructBegin()
    while True:
        _, ttype, number = reader.readFieldBegin()
        if ttype == 0:
            break
        found.append((number, ttype, raw_value(reader, ttype)))
        reader.readFieldEnd()
    reader.readStructEnd()
    return found


def raw_value(reader, ttype):
    if ttype == 12:
        return raw_fields(reader)
    if ttype in (14, 15):
        kind, size = (reader.readSetBegin if ttype == 14 else reader.readListBegin)()
        values = [raw_value(reader, kind) for _ in range(size)]
        (reader.readSetEnd if ttype == 14 else reader.readListEnd)()
        return values
    return {2: reader.readBool, 8: reader.readI32, 10: reader.readI64, 11: reader.readBinary}[ttype]()


def parsed(thrifts, data):
    reader = thrifts(TMemoryBuffer(data))
    head = reader.readMessageBegin()
    return head, raw_fields(reader)


def message(ours, method, seqid, result):
    codec = CODECS[method]
    return ours.head(codec, seqid) + ours.body(codec, result)


@BOTH
def test_open_txns_are_sent_as_list_and_as_set(ours, thrifts):
    reply = ttypes.GetOpenTxnsResponse(9, [5, 7], 5, b"\x02")
    head, fields = parsed(thrifts, message(ours, "get_open_txns", SEQID[thrifts], reply))
    assert head == ("get_open_txns", 2, 7)
    assert fields == [(0, 12, [(1, 10, 9), (2, 15, [5, 7]), (2, 14, [5, 7]), (3, 10, 5), (4, 11, b"\x02")])]


@BOTH
def test_an_empty_list_of_open_txns_and_empty_aborted_bits_are_there(ours, thrifts):
    reply = ttypes.GetOpenTxnsResponse(9, [], None, b"")
    _, fields = parsed(thrifts, message(ours, "get_open_txns", SEQID[thrifts], reply))
    assert fields == [(0, 12, [(1, 10, 9), (2, 15, []), (2, 14, []), (4, 11, b"")])]


@BOTH
def test_get_open_txns_req_is_for_newer_clients_and_sends_the_list_alone(ours, thrifts):
    reply = ttypes.GetOpenTxnsResponse(9, [5], 5, b"\0")
    _, fields = parsed(thrifts, message(ours, "get_open_txns_req", SEQID[thrifts], reply))
    assert [number for number, _, _ in fields[0][2]] == [1, 2, 3, 4]


@BOTH
def test_missing_parent_of_a_schema_is_told_to_3_1_and_to_4_x(ours, thrifts):
    error = ttypes.NoSuchObjectException("no database")
    _, fields = parsed(thrifts, ours.declared_exception(CODECS["create_ischema"], SEQID[thrifts], error))
    body = [(1, 11, b"no database")]
    assert sorted(fields) == [(-1, 12, body), (2, 12, body)]


@BOTH
def test_void_and_exceptions(ours, thrifts):
    assert parsed(thrifts, message(ours, "unlock", SEQID[thrifts], None))[1] == []
    error = ttypes.TxnOpenException("held")
    assert parsed(thrifts, ours.declared_exception(CODECS["unlock"], SEQID[thrifts], error))[1] == [
        (2, 12, [(1, 11, b"held")])
    ]
    head, fields = parsed(thrifts, ours.application_exception("x" * 200, SEQID[thrifts], TApplicationException(6, "ö")))
    assert head == ("x" * 200, 3, 7)
    assert fields == [(1, 11, "ö".encode()), (2, 8, 6)]


SEQID = {TBinaryProtocol: (7).to_bytes(4), TCompactProtocol: b"\x07"}
