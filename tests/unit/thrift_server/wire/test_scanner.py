"""The scanner finds the end that Thrift's own writer wrote, for any structure and any pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.transport.TTransport import TMemoryBuffer

from metastore.thrift_server.wire.scanner import DEEPEST, BinaryScanner, CompactScanner, MalformedError

BOTH = pytest.mark.parametrize(
    ("scanner", "protocol"), [(BinaryScanner, TBinaryProtocol), (CompactScanner, TCompactProtocol)]
)
SCALARS = {
    2: ("Bool", st.booleans()),
    3: ("Byte", st.integers(-128, 127)),
    4: ("Double", st.floats()),
    6: ("I16", st.integers(-(2**15), 2**15 - 1)),
    8: ("I32", st.integers(-(2**31), 2**31 - 1)),
    10: ("I64", st.integers(-(2**63), 2**63 - 1)),
    11: ("Binary", st.binary(max_size=40)),
}


@st.composite
def values(draw, depth=0):
    """(type, value) of any type."""
    ttype = draw(st.sampled_from([*SCALARS, *([12, 13, 14, 15] if depth < 4 else [])]))
    return ttype, draw(value_of(ttype, depth))


def value_of(ttype, depth):
    if ttype in SCALARS:
        return SCALARS[ttype][1]
    if ttype == 12:
        return structs(depth + 1)
    return collections(ttype, depth + 1)


@st.composite
def collections(draw, ttype, depth):
    kinds = [draw(st.sampled_from([*SCALARS, *([12, 15] if depth < 4 else [])])) for _ in range(2 if ttype == 13 else 1)]
    most = 20 if depth == 1 else 3  # a compact list of 15 and more has a header of its own; within others few will do
    items = draw(st.lists(st.tuples(*(value_of(kind, depth) for kind in kinds)), max_size=most))
    return kinds, items


def structs(depth=0):
    return st.lists(st.tuples(st.integers(-3, 300), values(depth)), max_size=6)


def write_struct(out, fields):
    out.writeStructBegin("s")
    for number, (ttype, value) in fields:
        out.writeFieldBegin("f", ttype, number)
        write(out, ttype, value)
        out.writeFieldEnd()
    out.writeFieldStop()
    out.writeStructEnd()


def write(out, ttype, value):
    if ttype in SCALARS:
        getattr(out, f"write{SCALARS[ttype][0]}")(value)
    elif ttype == 12:
        write_struct(out, value)
    else:
        kinds, items = value
        name = {13: "Map", 14: "Set", 15: "List"}[ttype]
        getattr(out, f"write{name}Begin")(*kinds, len(items))
        for item in items:
            for kind, part in zip(kinds, item, strict=True):
                write(out, kind, part)
        getattr(out, f"write{name}End")()


def written(protocol, fields):
    buffer = TMemoryBuffer()
    out = protocol(buffer)
    if protocol is TCompactProtocol:
        out.writeMessageBegin("m", 1, 1)
        begin = len(buffer.getvalue())
        write_struct(out, fields)
        return buffer.getvalue()[begin:]
    write_struct(out, fields)
    return buffer.getvalue()


@BOTH
@given(fields=structs(), data=st.data())
def test_the_end_is_found_in_any_pieces(scanner, protocol, fields, data):
    raw = written(protocol, fields)
    looking, received = scanner(0, 1 << 20, 1 << 20), bytearray()
    while len(received) < len(raw):
        assert not looking.advance(received)
        size = data.draw(st.integers(1, max(1, len(raw) - len(received))))
        received += raw[len(received) : len(received) + size]
    assert looking.advance(received)
    assert looking.at == len(raw)


@BOTH
@given(fields=structs(), more=st.binary(max_size=20))
def test_what_follows_is_left_alone(scanner, protocol, fields, more):
    raw = written(protocol, fields)
    looking = scanner(0, 1 << 20, 1 << 20)
    assert looking.advance(raw + more)
    assert looking.at == len(raw)


@BOTH
@given(raw=st.binary(max_size=200))
def test_any_bytes_end_in_an_answer(scanner, protocol, raw):
    try:
        scanner(0, 1000, 1000).advance(raw)
    except MalformedError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("scanner", "raw"),
    [
        (BinaryScanner, b"\x0b\0\1\xff\xff\xff\xff"),  # text of -1 bytes
        (BinaryScanner, b"\x0b\0\1\x7f\xff\xff\xff"),  # text of 2 GB
        (BinaryScanner, b"\x0f\0\1\x0b\x7f\xff\xff\xff"),  # list of 2^31 texts
        (BinaryScanner, b"\x0f\0\1\x0a\x00\x20\x00\x00"),  # list of numbers just beyond the limit
        (BinaryScanner, b"\x0d\0\1\x0b\x0b\xff\xff\xff\xff"),  # map of -1
        (BinaryScanner, b"\x63\0\1"),  # no such type
        (CompactScanner, b"\x18\xff\xff\xff\xff\x0f"),  # text of 4 GB
        (CompactScanner, b"\x19\xf8\xff\xff\xff\xff\x0f"),  # list of 4 G texts
        (CompactScanner, b"\x16" + b"\xff" * 11),  # a number without end
        (CompactScanner, b"\x1e"),  # no such type
    ],
)
def test_impossible_lengths_are_refused_at_once(scanner, raw):
    with pytest.raises(MalformedError):
        scanner(0, 1 << 20, 1 << 20).advance(raw)


@pytest.mark.parametrize(
    ("scanner", "level"),
    [(BinaryScanner, b"\x0c\0\1"), (CompactScanner, b"\x1c"), (BinaryScanner, b"\x0f\0\1\x0f\0\0\0\1"),
     (CompactScanner, b"\x19\x19")],
)
def test_deep_nesting_is_refused(scanner, level):
    with pytest.raises(MalformedError, match="deep"):
        scanner(0, 1 << 20, 1 << 20).advance(level + (level[-5:] if len(level) != 3 else level) * DEEPEST * 3)
