"""Messages taken apart and put together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.protobuf import (
    BYTES,
    FIXED_32,
    FIXED_64,
    VARINT,
    bytes_field,
    fields,
    number_field,
    unzigzag,
    zigzag,
)


@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=300))))
def test_what_is_put_together_is_taken_apart(values: list[int | bytes]) -> None:
    message = b"".join(number_field(number, one) if isinstance(one, int) else bytes_field(number, one)
                       for number, one in enumerate(values, 1))

    found = list(fields(message))

    assert [(one.number, one.value) for one in found] == list(enumerate(values, 1))
    assert b"".join(one.raw for one in found) == message


def test_every_wire_type_is_passed_over() -> None:
    found = list(fields(b"\x48\x96\x01" + b"\x51" + b"8 bytes!" + b"\x5a\x03abc" + b"\x65" + b"four"))

    assert [(one.number, one.wire_type, one.value) for one in found] == [
        (9, VARINT, 150), (10, FIXED_64, b"8 bytes!"), (11, BYTES, b"abc"), (12, FIXED_32, b"four")]


def test_signed_numbers_of_the_specification() -> None:
    assert [zigzag(one) for one in (0, -1, 1, -2, 2147483647, -2147483648)] == [0, 1, 2, 3, 4294967294, 4294967295]


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_come_back(value: int) -> None:
    assert unzigzag(zigzag(value)) == value
    assert 0 <= zigzag(value) < 2**64


def test_a_number_is_no_message() -> None:
    [number, message] = fields(number_field(6, 2**60) + bytes_field(7, b"abc"))

    with pytest.raises(ValueError, match=f"field 6 is the number {2**60}, where bytes are expected"):
        assert number.content
    assert message.content == b"abc"


@pytest.mark.parametrize(("message", "sentence"), [
    (b"\x0c", "wire type 4 at byte 0"), (b"\x0a\x05abc", "5 bytes are to follow byte 2, and there are 3"),
    (b"\x09\x01", "8 bytes are to follow"), (b"\x0d\x01", "4 bytes are to follow"), (b"\x08", "the number at byte 1 has no end"),
    (b"\x08" + b"\xff" * 10 + b"\x01", "the number at byte 1 has no end")])
def test_bytes_that_are_no_whole_message(message: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        list(fields(message))
