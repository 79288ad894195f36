"""The SQL in front of the partition filter never drops what the rule keeps, and prefix look-ups find what it would find."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metastore.catalog.rules.partition_predicate import (
    And,
    Comparison,
    KeyKind,
    NullTest,
    Op,
    Or,
    Predicate,
    Readings,
    Unknown,
    keeps,
    leading_texts,
)
from metastore.catalog.store.partition_prefilter import is_decided, is_exact, leading, prefilter

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
VALUES = ["", DEFAULT, "a", "A", "ab", "a%", "a_b", "é", "\U0001f600", "\uffff", "\\", "'", "0", "7", "007", "-3", "+5", "3.5", " 7", "a ", "ab  ", r"a\b",
          "99999999999999999999", "9" * 39, "9" * 41, "2020-01-01", "2020-1-1", "2020-02-30", "0000-01-01", "1999-12-31",
          "2020-01-01 00:00:00", "2020-01-01 10:00:00.5", "2020-13-01 00:00:00"]
TEXTS = st.sampled_from(VALUES) | st.text("aAb%_.*\\é", max_size=4)
ORDERED = st.sampled_from([op for op in Op if op is not Op.LIKE])


def comparison(column: int) -> st.SearchStrategy[Comparison | NullTest]:
    return st.one_of(
        st.builds(Comparison, st.just(column), st.just(KeyKind.TEXT), st.sampled_from(Op), TEXTS),
        st.builds(Comparison, st.just(column), st.just(KeyKind.CHAR), st.sampled_from(Op), TEXTS.map(lambda text: text.rstrip(" "))),
        st.builds(NullTest, st.just(column), st.sampled_from(["int", "date", "decimal(5,2)"]), st.booleans()),
        st.builds(Comparison, st.just(column), st.just(KeyKind.INTEGER), ORDERED,
                  st.sampled_from([0, 7, -3, 5, 10**19, 10**20 - 1]) | st.integers(-2**63, 2**63 - 1)),
        st.builds(Comparison, st.just(column), st.just(KeyKind.DATE), ORDERED,
                  st.sampled_from([date(2020, 1, 1), date(1999, 12, 31)]) | st.dates()),
        st.builds(Comparison, st.just(column), st.just(KeyKind.TIMESTAMP), ORDERED,
                  st.sampled_from([datetime(2020, 1, 1), datetime(2020, 1, 1) + timedelta(hours=10)])))


PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    st.integers(0, 1).flatmap(comparison) | st.just(Unknown("x")),
    lambda parts: st.builds(And, st.lists(parts, max_size=3).map(tuple)) | st.builds(Or, st.lists(parts, max_size=3).map(tuple))
    | st.builds(Readings, st.lists(parts, min_size=2, max_size=2).map(tuple)),
    max_leaves=6)


@pytest.mark.parametrize("default", [DEFAULT, "7"])
def test_the_prefilter_keeps_what_the_rule_keeps(rpc: Any, default: str) -> None:
    rpc.table(keys="k l")
    rows = [(value, VALUES[(3 * i + 1) % len(VALUES)]) for i, value in enumerate(VALUES) if value != DEFAULT]
    rpc.add_partitions([rpc.part(row) for row in rows])

    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(PREDICATES)
    def check(predicate: Predicate) -> None:
        condition, parameters = prefilter(predicate, default)
        passed = {tuple(values) for (values,) in rpc.db.once(f'SELECT p."values" FROM partitions p WHERE {condition}', parameters)}
        wanted = {row for row in rows if keeps(predicate, row, default) is not False}
        assert passed >= wanted
        condition, parameters = leading(["k", "l"], leading_texts(predicate, default))
        in_range = {tuple(values) for (values,) in rpc.db.once(f'SELECT p."values" FROM partitions p WHERE {condition}', parameters)}
        assert in_range >= wanted
        if is_exact(predicate):
            assert passed == wanted
            assert not is_decided(predicate, default) or None not in {keeps(predicate, row, default) for row in rows}

    check()


def test_a_filter_with_thousands_of_terms_is_answered(rpc: Any) -> None:
    rpc.table(keys="k:int")
    rpc.add("1", "2", "3000", "9999")
    text = " or ".join(f"k = {number}" for number in range(5000))
    assert [part.values for part in rpc.get_partitions_by_filter("d", "t", text, -1)] == [["1"], ["2"], ["3000"]]
    short = " or ".join(f"k = {number}" for number in range(1500))
    assert rpc.get_num_partitions_by_filter("d", "t", short) == 2


def test_what_is_not_exact_is_judged_by_the_rule(rpc: Any) -> None:
    rpc.table(keys="k:date l")
    rpc.add("2020-01-01/ab", "2020-02-30/ab", "2020-01-01/b", "2020-1-1/ab")
    for text, count in (("k = '2020-01-01'", 4), ("l like 'a%'", 3), ("l like '%b' and k != '2020-01-01'", 1), ("l = 'ab'", 3)):
        assert rpc.get_num_partitions_by_filter("d", "t", text) == count, text
        assert len(rpc.get_partitions_by_filter("d", "t", text, -1)) == count, text
        assert len(rpc.get_partitions_by_filter("d", "t", text, 2)) == min(2, count), text
        assert rpc.get_partitions_by_filter("d", "t", text, 0) == [], text
