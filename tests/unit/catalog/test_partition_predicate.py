"""What a condition says of the first keys."""

from datetime import date

import pytest

from metastore.catalog.rules.partition_predicate import (
    And,
    Comparison,
    KeyKind,
    Op,
    Or,
    Readings,
    Unknown,
    leading_texts,
)

DAY, HOUR, REGION = (Comparison(column, KeyKind.TEXT, Op.EQ, text) for column, text in enumerate(["d1", "h1", "r1"]))


@pytest.mark.parametrize(("predicate", "texts"), [
    (DAY, ["d1"]),
    (HOUR, []),
    (And(()), []),
    (And((DAY, HOUR)), ["d1", "h1"]),
    (And((HOUR, And((REGION, DAY)))), ["d1", "h1", "r1"]),
    (And((DAY, REGION)), ["d1"]),
    (And((DAY, Or((HOUR, REGION)), Unknown("x"))), ["d1"]),
    (Or((DAY, DAY)), []),
    (Unknown("x"), []),
    (Comparison(0, KeyKind.TEXT, Op.LIKE, "d1"), []),
    (Comparison(0, KeyKind.TEXT, Op.NE, "d1"), []),
    (Comparison(0, KeyKind.INTEGER, Op.EQ, 1), []),
    (Comparison(0, KeyKind.CHAR, Op.EQ, "d1"), []),
    (Readings((DAY, DAY)), []),
    (Comparison(0, KeyKind.DATE, Op.EQ, date(2020, 1, 1)), []),
    (Comparison(0, KeyKind.TEXT, Op.EQ, ""), []),
    (And((Comparison(0, KeyKind.TEXT, Op.EQ, "none"), HOUR)), []),
])
def test_leading_texts(predicate, texts):
    assert leading_texts(predicate, "none") == texts
