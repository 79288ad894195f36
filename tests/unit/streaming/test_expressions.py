"""SQL over Arrow rows: what is understood means what it means in SQL, the rest is refused."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from metastore.errors import InvalidOperationError
from metastore.streaming.expressions import constant, evaluated

ROWS = pa.table({
    "i": pa.array([1, -2, None], pa.int32()), "big": pa.array([2**62, 5, 6], pa.int64()),
    "d": pa.array([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
    "x": pa.array([1.5, float("nan"), None], pa.float64()), "s": ["größe", "  ab ", None],
    "day": pa.array([date(2024, 5, 1), date(1969, 12, 31), None]), "at": pa.array([datetime(2024, 5, 1, 12), None, None], pa.timestamp("us")),
    "b": [True, False, None]})

T, F, N = True, False, None


@pytest.mark.parametrize(("text", "expected"), [
    ("i > 0", [T, F, N]), ("i > 0 OR s IS NULL", [T, F, T]), ("i > 0 AND big = 6", [F, F, N]), ("NOT i > 0", [F, T, N]),
    ("i IS NOT NULL", [T, T, F]), ("i <=> NULL", [F, F, T]), ("i <=> 1", [T, F, F]), ("(i) != -2", [T, F, N]),
    ("i = NULL", [N, N, N]), ("i BETWEEN -2 AND 0", [F, T, N]), ("i NOT IN (1, NULL)", [F, N, N]), ("i IN (1, -2)", [T, T, N]),
    ("i + 1 >= 2", [T, F, N]), ("i * 2 - 1 < 0", [F, T, N]), ("i < d", [T, T, N]), ("d >= 1.5", [T, F, N]), ("d > 1.499", [T, F, N]),
    ("d < big", [T, T, N]), ("x > 1e0", [T, T, N]), ("x < 1.6", [T, F, N]), ("x = x", [T, T, N]), ("x >= i", [T, T, N]), ("x != 1.5", [F, T, N]),
    ("length(s) = 5", [T, T, N]), ("trim(s) = 'ab'", [F, T, N]), ("s LIKE 'gr%e'", [T, F, N]), ("s > 'a'", [T, F, N]),
    ("day >= '2000-01-01'", [T, F, N]), ("day < DATE '2000-01-01'", [F, T, N]), ("at > day", [T, N, N]),
    ("at >= TIMESTAMP '2024-05-01 12:00:00'", [T, N, N]), ("b", [T, F, N]), ("b = false", [F, T, N]), ("coalesce(i, 0) = 0", [F, F, T]),
    ("abs(i) = 2", [F, T, N]), ("S = 'größe'", [T, F, N]), ("t.i = 1", [T, F, N])])
def test_conditions(text: str, expected: list[bool | None]) -> None:
    assert evaluated(text, ROWS).to_pylist() == expected


@pytest.mark.parametrize("text", [
    "rand() > 0", "i / 2 > 0", "i % 2 = 0", "s > 5", "i = 'x'", "day = 'yesterday'", "i AND b", "nothing > 0", "i IN (SELECT 1)",
    "s LIKE s", "i +", "d + 1 > 0", "length(i) = 1", "x IS TRUE", "cast(s AS int) > 1", "trim(BOTH 'x' FROM s) = 'a'", "s = day"])
def test_what_is_not_understood(text: str) -> None:
    with pytest.raises(InvalidOperationError):
        evaluated(text, ROWS)


def test_an_overflow_is_no_answer() -> None:
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        evaluated("big * 4 > 0", ROWS)


@pytest.mark.parametrize(("text", "kind", "expected"), [
    ("'new'", pa.string(), "new"), ("0", pa.decimal128(5, 2), Decimal("0.00")), ("-1", pa.int8(), -1), ("NULL", pa.int8(), None),
    ("1.5", pa.float64(), 1.5), ("'2024-05-01'", pa.date32(), date(2024, 5, 1)), ("CAST('2024-05-01' AS DATE)", pa.date32(), date(2024, 5, 1)),
    ("TIMESTAMP '2024-05-01 01:02:03'", pa.timestamp("us"), datetime(2024, 5, 1, 1, 2, 3)), ("true", pa.bool_(), True)])
def test_constants(text: str, kind: pa.DataType, expected: object) -> None:
    assert constant(text, kind) == expected


@pytest.mark.parametrize("text", ["current_date()", "'many'", "300", "i"])
def test_no_constants(text: str) -> None:
    with pytest.raises(InvalidOperationError):
        constant(text, pa.int8())
