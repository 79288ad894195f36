"""Bucket hashes against values that Hive computed."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from metastore.acid.hashes import bucket_of, murmur3, row_hash
from metastore.acid.types import parse_type
from metastore.errors import InvalidInputError
from tests.support.acid.shared_vectors import HASHES


def _hash(kind: str, value: Any, version: int) -> int:
    return row_hash([value], [parse_type(kind)], version)


@pytest.mark.parametrize(("kind", "value", "expected"), [(kind, value, first) for kind, value, first, _ in HASHES])
def test_version_1(kind: str, value: Any, expected: int) -> None:
    assert _hash(kind, value, 1) == expected


@pytest.mark.parametrize(
    ("kind", "value", "expected"), [(kind, value, second) for kind, value, _, second in HASHES if second is not None]
)
def test_version_2(kind: str, value: Any, expected: int) -> None:
    assert _hash(kind, value, 2) == expected


def test_columns_are_combined_in_order() -> None:
    types = [parse_type("int"), parse_type("string")]

    assert row_hash([1, "a"], types, 1) == 128
    assert row_hash([1, "a"], types, 2) == -907245731


@pytest.mark.parametrize(("version", "bucket"), [(1, 4), (2, 7)])
def test_a_negative_hash_lands_in_a_bucket(version: int, bucket: int) -> None:
    hashed = _hash("bigint", 300000000000, version)

    assert hashed < 0
    assert bucket_of([300000000000], [parse_type("bigint")], 8, version) == (hashed & 0x7FFFFFFF) % 8
    assert bucket_of([300000000000], [parse_type("bigint")], 8, version) == {1: 5, 2: 7}[version], bucket


def test_murmur_extends_the_sign_of_tail_bytes() -> None:
    assert murmur3(b"\xff") == -1036465288


def test_all_nans_are_one() -> None:
    assert _hash("float", math.nan, 1) == 0x7FC00000
    assert _hash("double", math.nan, 1) == 0x7FF80000


def test_nested_types_of_version_1() -> None:
    assert _hash("array<int>", [1, 2, None], 1) == (31 + 2) * 31
    assert _hash("struct<a:int,b:string>", (1, "a"), 1) == 128
    assert _hash("map<string,int>", {"a": 7}, 1) == 97 ^ 7
    assert _hash("map<string,int>", {"a": 7, "b": 1}, 1) == (97 ^ 7) + (98 ^ 1)


def test_a_maps_values_are_hashed_by_version_1_always() -> None:
    assert _hash("map<string,int>", {"a": 7}, 2) == 1086686554 ^ 7


def test_decimals_are_hashed_without_zeros_behind_the_point_only() -> None:
    assert _hash("decimal(10,2)", Decimal("100.00"), 1) == 31 * 100
    assert _hash("decimal(10,2)", Decimal("1E2"), 1) == 31 * 100
    assert _hash("decimal(38,0)", Decimal(2**32), 1) == 31 * 31
    assert _hash("decimal(10,2)", Decimal(0), 1) == 0


def test_timestamps_with_a_zone_count_from_the_epoch() -> None:
    assert _hash("timestamp", datetime(2020, 1, 1, tzinfo=UTC), 1) == 394459200
    assert _hash("timestamp", datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=UTC), 1) == 5000


@pytest.mark.parametrize(("kind", "version"), [("timestamp", 2), ("interval_day_time", 1), ("uniontype<int>", 2)])
def test_what_cannot_be_hashed_is_refused(kind: str, version: int) -> None:
    with pytest.raises(InvalidInputError, match=f"bucketing version {version}"):
        _hash(kind, datetime(2020, 1, 1), version)
