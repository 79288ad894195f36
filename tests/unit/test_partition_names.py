"""The codec of partition names, beside what Hive's own FileUtils and Warehouse answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.partition_names import canonical, escape, make_name, parse_name, unescape, values_for

# Rows written by Hive 2.3.10's FileUtils.makePartName; a live server makes them so, too (CLIENT-7).
MADE = [
    (["ds"], ["2008-07-01 14:13:12"], "ds=2008-07-01 14%3A13%3A12"),
    (["k"], ["a b/c=d:%x"], "k=a b%2Fc%3Dd%3A%25x"),
    (["Year", "month"], ["2017", "March"], "year=2017/month=March"),
    (["k"], [""], "k=__HIVE_DEFAULT_PARTITION__"),
    (["k"], [None], "k=__HIVE_DEFAULT_PARTITION__"),
    (["k"], ["\"#%'*/:=?[\\]^{"], "k=%22%23%25%27%2A%2F%3A%3D%3F%5B%5C%5D%5E%7B"),
    (["k"], [" }|<>&+,-@~;!$()`."], "k= }|<>&+,-@~;!$()`."),
    (["k"], ["\x01\t\n\x1f\x7f"], "k=%01%09%0A%1F%7F"),
    (["k"], ["Åß漢😀"], "k=Åß漢😀"),
    (["a b", "c=d"], ["1", "2"], "a b=1/c%3Dd=2"),
]
text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
key = st.text(st.sampled_from("abc_/=% é"), min_size=1)


@pytest.mark.parametrize(("keys", "values", "name"), MADE)
def test_names_are_spelled_as_hive_spells_them(keys: list[str], values: list[str | None], name: str) -> None:
    assert make_name(keys, values) == name


@pytest.mark.parametrize(("escaped", "plain"), [
    ("%3a%3A", "::"), ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%%41", "%A"), ("%C3%A9", "Ã©"), ("a+b", "a+b"),
])
def test_unescaping_leaves_what_is_no_escape(escaped: str, plain: str) -> None:
    assert unescape(escaped) == plain


@pytest.mark.parametrize(("name", "pairs"), [
    ("ds=2008-07-01 14%3A13%3A12/hr=14", [("ds", "2008-07-01 14:13:12"), ("hr", "14")]),
    ("", []), ("junk", []), ("a=", []), ("=b", []), ("a=1/junk/b=2", [("a", "1"), ("b", "2")]), ("a=b=c", [("a=b", "c")]),
])
def test_a_name_parses_into_its_well_formed_segments(name: str, pairs: list[tuple[str, str]]) -> None:
    assert parse_name(name) == pairs


def test_values_for_wants_every_key_and_ignores_others() -> None:
    assert values_for(["year", "month"], "month=5/year=2017/x=1") == ["2017", "5"]
    assert values_for(["year", "month"], "year=2017") is None
    assert values_for(["year"], "YEAR=2017") is None


@given(text)
def test_escaping_round_trips(value: str) -> None:
    assert unescape(escape(value)) == value


@given(st.lists(st.tuples(key, text.filter(bool)), min_size=1))
def test_making_and_parsing_are_inverse(pairs: list[tuple[str, str]]) -> None:
    name = make_name([k for k, _ in pairs], [v for _, v in pairs])
    assert parse_name(name) == pairs
    assert canonical(name) == name


@given(st.text(st.sampled_from("aA=/%2fF3dx{")) | text)
def test_canonical_is_idempotent(name: str) -> None:
    assert canonical(canonical(name)) == canonical(name)


@pytest.mark.parametrize(("given_name", "stored"), [
    ("DS=2008-07-01 14:13/HR=1", "ds=2008-07-01 14%3A13/hr=1"), ("k=a%3ab", "k=a%3Ab"), ("k=a%b", "k=a%25b"),
    ("k=1/", "k=1"), ("no partition", "no partition"), ("k=1/junk", "k=1/junk"), ("", ""),
])
def test_canonical_spelling(given_name: str, stored: str) -> None:
    assert canonical(given_name) == stored
