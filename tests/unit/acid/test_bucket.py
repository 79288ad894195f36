"""The bucket codec."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.bucket import BucketProperty, decode, encode
from metastore.errors import InvalidInputError


@pytest.mark.parametrize(
    ("writer", "statement", "number"),
    [
        (0, 0, 536870912),
        (0, 1, 536870913),
        (1, 0, 536936448),
        (1, 1, 536936449),
        (2, 0, 537001984),
        (3, 0, 537067520),
        (7, 3, 537329667),
        (100, 0, 543424512),
        (4095, 0, 805240832),
        (4095, 4095, 805244927),
    ],
)
def test_version_1(writer: int, statement: int, number: int) -> None:
    assert encode(writer, statement) == number
    assert decode(number) == BucketProperty(writer, statement, 1)


def test_no_statement_counts_as_0() -> None:
    assert encode(3) == encode(3, 0) == encode(3, None)


def test_version_0_is_the_bucket_id_itself() -> None:
    assert decode(5) == BucketProperty(5, 0, 0)


def test_newer_hives_overflow_decodes_to_the_low_bits() -> None:
    assert decode(0x20000002) == BucketProperty(0, 2)


@pytest.mark.parametrize("number", [0x40000000, 0x60000000, -1, -(2**31)])
def test_other_versions_are_refused(number: int) -> None:
    with pytest.raises(InvalidInputError, match="codec version"):
        decode(number)


@pytest.mark.parametrize(("writer", "statement"), [(-1, 0), (4096, 0), (0, 4096), (0, -1)])
def test_what_does_not_fit_is_refused(writer: int, statement: int) -> None:
    with pytest.raises(InvalidInputError, match="0 to 4095"):
        encode(writer, statement)


@given(st.integers(0, 4095), st.integers(0, 4095))
def test_everything_is_read_back(writer: int, statement: int) -> None:
    assert decode(encode(writer, statement)) == (writer, statement, 1)
