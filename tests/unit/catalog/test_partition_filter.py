"""The partition filter language: what is accepted, what it means, what is refused and how."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.catalog.rules.like import like, like_prefix
from metastore.catalog.rules.partition_filter import parse_filter
from metastore.catalog.rules.partition_predicate import And, Or, Unknown, keeps
from metastore.catalog.rules.partition_syntax import PartitionKey
from metastore.errors import InvalidRequestError

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
# Fixture F6 (CAT-Y3)
F6_KEYS = [PartitionKey("p1", "string"), PartitionKey("p2", "string"), PartitionKey("p3", "int")]
F6 = [("p11", "p21", "31"), ("p11", "p22", "32"), ("p12", "p21", "31"), ("p12", "p23", "32"), ("p13", "p24", "31"),
      ("p13", "p25", "-33")]
P4_KEYS = [PartitionKey("yyyy", "string"), PartitionKey("mm", "string"), PartitionKey("dd", "string")]
P4 = {"A": ("1999", "01", "02"), "B": ("2009", "02", "10"), "C": ("2017", "10", "26"), "D": ("2017", "11", "27")}
MIXED = [PartitionKey("s", "string"), PartitionKey("n", "bigint"), PartitionKey("d", "date"),
         PartitionKey("t", "timestamp"), PartitionKey("f", "double"), PartitionKey("v", "varchar(10)"),
         PartitionKey("c", "char(4)"), PartitionKey("z", "timestamp with local time zone")]


def kept(text: str) -> int:
    predicate = parse_filter(text, F6_KEYS)
    return sum(bool(keeps(predicate, row)) for row in F6)


@pytest.mark.parametrize(("text", "count"), [
    ("p3 = 31", 3), ("p3 != 8589934592", 6), ('31 != p3 and p1 = "p12"', 1), ('p1="p12" and p2="p27" Or p2="p21"', 2),
    ('p1="p12" and (p2="p27" Or p2="p21")', 1), ('p1 like "p1.*"', 6), ('p1 like "p1%"', 6), ('p2 like "p.*3"', 1),
    ("p3 > -33", 5), ("p3 < 0", 1), ("p3 between 31 and 32", 5), ("p3 between 32 and 31", 0), ("0 > p3", 1),
    ('p1 not between "p11" and "p12"', 2), ("(p3) in (31,-33)", 4), ("p3 in (31, -33)", 4), ('(p1) not in ("p11")', 4),
    ('(struct(p1,p3)) IN (struct("p11",31))', 1), ('(STRUCT(p1,p3)) in (CONST STRUCT("p11",31), CONST STRUCT(\'p13\',-33))', 2),
    ('(STRUCT(p1,p3)) NOT IN (CONST STRUCT("p11",31))', 5), ("", 6), ("p3 = 031", 3), ("p3 == 31", 3), ("p3 <=> 31", 3),
    ("`p3` <> 31", 3), ("((p3 = 31))", 3), ("P3=31 AnD p1>='p12'", 2), ("p2 LIKE 'p2_'", 6), (r"p2 like 'p2\_'", 0),
    ("p1 = 'p12' or (p3 = -33 and (p1 = 'p13' or p1 = 'p11')) or p2 = 'p22'", 4),
])
def test_hives_own_filter_examples(text: str, count: int) -> None:
    assert kept(text) == count


@pytest.mark.parametrize(("text", "names"), [
    ('yyyy="2017" OR mm="02"', "BCD"), ('yYyY="2017"', "CD"), ('yyyy="2017" AND mm="99"', ""), ('yyyy="20177"', ""),
])
def test_the_year_month_day_table(text: str, names: str) -> None:
    predicate = parse_filter(text, P4_KEYS)
    assert "".join(name for name, values in P4.items() if keeps(predicate, values)) == names


@pytest.mark.parametrize(("text", "sentence"), [
    ('p3 >= "p12"', "Filtering is supported only on partition keys of type string"),
    ("p1 = 12", "Filtering is supported only on partition keys of type string"),
    ("p3 = 2020-01-01", "Filtering is supported only on partition keys of type string"),
    ("p3 like '3%'", "Filtering is supported only on partition keys of type string"),
    ('c1 >= "x"', "Specified key <c1> is not a partitioning key for the table"),
    ("c1 >= ", "Error parsing partition filter"), ('yyyy=2017"', "Error parsing partition filter"),
    ("p3 = 99999999999999999999", "Error parsing partition filter"), ("p3 = 1.5", "Error parsing partition filter"),
    ("  ", "Error parsing partition filter"), ("p1='a' p2='b'", "Error parsing partition filter"),
    ("'p.*' like p1", "Error parsing partition filter"), ("not p1 = 'a'", "Error parsing partition filter"),
    ("p1 is null", "Error parsing partition filter"), ("p1 = p2", "Error parsing partition filter"),
    ("(p1 = 'a'", "Error parsing partition filter"), ("p1 = 'a')", "Error parsing partition filter"),
    ("p1 = 2020-13-45", "Error parsing partition filter"), ("p1 = 2020-1-1", "Error parsing partition filter"),
    ("and = 'a'", "Error parsing partition filter"), ("p3 = 1L", "Error parsing partition filter"),
    ("(struct(p1,p3)) in (struct('a'))", "Error parsing partition filter"), ("p3 = ٣", "Error parsing partition filter"),
    ("p3 = true", "Error parsing partition filter"), ("p1 in ()", "Error parsing partition filter"),
    ("p1 between 'a' or 'b'", "unexpected \"or 'b'\" at character 14 of"), ("(p1) = 'a'", "unexpected \"= 'a'\" at character 4 of"),
])
def test_what_is_refused_is_refused_with_hives_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        parse_filter(text, F6_KEYS)


@pytest.mark.parametrize(("text", "column", "value", "answer"), [
    ("d > DATE '2020-01-01'", 2, "2020-01-02", True), ("d > '2020-01-01'", 2, "2020-01-02", True),
    ("d > 2020-01-01", 2, "2020-01-01", False), ("d = '2020-01-05'", 2, "2020-1-5", True),
    ("d != '2020-01-05'", 2, "2020-02-30", None), ("d != '2020-01-05'", 2, DEFAULT, False),
    ("n <> 5", 1, DEFAULT, False), ("n <> 5", 1, "", False), ("n <> 5", 1, "abc", None), ("n = 7", 1, "007", True),
    ("n < 8589934592", 1, "-0", True), ("s != 'x'", 0, "", True), (f"s = '{DEFAULT}'", 0, DEFAULT, True),
    (f"n = '{DEFAULT}'", 1, "", True), (f"n != '{DEFAULT}'", 1, "5", True), (f"f = '{DEFAULT}'", 4, "1.5", False),
    (f"s = '{DEFAULT}'", 0, "", None), ("s = ''", 0, "", None), ("s = 'a'", 0, "", False), ("s like ''", 0, "", None),
    ("t >= TIMESTAMP '2020-01-01 10:00:00'", 3, "2020-01-01 10:00:00.5", True),
    ("t >= '2020-01-01 10:00:00'", 3, "2020-01-01", False), ("v like 'a%'", 5, "abc", True),
    ("s > 'a'", 0, "B", False), ("s < '\uffff'", 0, "\U0001f600", False), (r's = "a\b"', 0, r"a\b", True),
    (r's = "a\"b"', 0, 'a"b', True), ("s like 'a+b.*'", 0, "a+bc", True), (r"s like '100\%'", 0, "100x", False),
    ("s like 'a.*'", 0, "a\nb", True), ("s like '%a'", 0, "ba\n", False),
    ("t != '2020-01-01'", 3, "2020-01-01 25:00:00", None), ("t = 2020-01-01", 3, "2020-01-01 00:00:00.0", True),
    ("d != '2020-01-01'", 2, "soon", None), ("t != '2020-01-01'", 3, "soon", None),
    ("n not in (1, 2)", 1, "3", True), ("n not in (1, 2)", 1, "2", False), ("n not in (1, 2)", 1, "2.0", None),
    *((f"d {op} '2020-01-01'", 2, value, None) for op in ("=", "!=", "<", ">=") for value in (
        "2020-01-01 23:59:59", " 2020-01-01", "2020-01-01T00:00:00", "12020-01-01", "0000-01-01", "-0044-03-15", "2020-01")),
    *((f"n {op} 7", 1, value, None) for op in ("=", "!=", "<", ">=") for value in (" 7", "7.0", "0x7", "7L", "1e1", "\u0667")),
    *((f"d {op} '{day}'", 2, "2020-01-01", None) for op in ("=", "<") for day in ("+12345-01-02", "12345-01-02", "-0044-03-15", "0000-01-01")),
    ("t = '2020-01-01 00:00:00.1234567'", 3, "2020-01-01 00:00:00.1234567", None), ("t > '2020-01-01'", 3, "2020-01-01 00:00:00.0000001", None),
    ("t = '2020-01-01 00:00:00.5000000'", 3, "2020-01-01 00:00:00.500", True), ("z = '2020-01-01'", 7, "2020-01-01", None),
    ("c = 'ab'", 6, "ab  ", True), ("c != 'ab  '", 6, "ab", False), ("c < 'b'", 6, "b ", False), ("c like 'ab'", 6, "ab  ", True),
    (r"s = 'a\"b'", 0, r"a\"b", None), (r"s = 'a\"b'", 0, 'a"b', None), (r"s != 'a\"b'", 0, 'a"b', None), (r"s = 'a\"b'", 0, "ab", False),
    (r's = "x\"', 0, "x\\", True), (r's in ("x\", "y") and s != "z"', 0, "x\\", True), (r's like "a\.*"', 0, r"a\b", None),
    (r's like "a\.*"', 0, "a.*", None), (r's like "a\.*"', 0, "ab", False), ('s like ".*".*"', 0, 'a"b', True), ('s like ".*".*"', 0, "ab", False),
    ('s like "a".*" and v = "x"', 0, 'a"b', False), ('(s like ".*".*" or s like "c.*")', 0, "cd", True),
    (f"n = '{DEFAULT}'", 1, "1e3", None), (f"n != '{DEFAULT}'", 1, "9999999999999999999", None), (f"d = '{DEFAULT}'", 2, "2020-01-01", False),
    (f"d != '{DEFAULT}'", 2, "2020-01", None), (f"t != '{DEFAULT}'", 3, "2020-01-01", True), (f"f != '{DEFAULT}'", 4, "x", None),
])
def test_comparing_by_the_keys_type(text: str, column: int, value: str, *, answer: bool | None) -> None:
    values = ["0"] * len(MIXED)
    values[column] = value
    assert keeps(parse_filter(text, MIXED), values) is answer


@pytest.mark.parametrize(("text", "sentence"), [
    ("t = '2020-01-01 25:00:00'", "key t is of type timestamp, the filter has = '2020-01-01 25:00:00'"),
    ("d = TIMESTAMP '2020-01-01 10:00:00'", "key d is of type date"), ("f = 1", "key f is of type double, the filter has = 1"),
    ("d = 'soon'", "key d is of type date"), (f"n < '{DEFAULT}'", "key n is of type bigint"),
])
def test_a_constant_of_another_type_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        parse_filter(text, MIXED)


def test_an_unknown_part_decides_nothing_that_the_rest_decides() -> None:
    unknown, row = Unknown("dec > 1.5"), F6[0]
    true, false = (parse_filter(text, F6_KEYS) for text in ("p3 = 31", "p3 = 32"))
    assert keeps(unknown, row) is None
    assert [keeps(And((unknown, part)), row) for part in (true, false, unknown)] == [None, False, None]
    assert [keeps(Or((unknown, part)), row) for part in (true, false, unknown)] == [True, None, None]


def test_deep_nesting_and_long_chains_are_read() -> None:
    assert kept("(" * 5000 + "p3 = 31" + ")" * 5000) == 3
    assert kept(" or ".join(["p3 = 31"] * 5000)) == 3
    left_deep = "p3 = 31"
    for _ in range(300):
        left_deep = f"({left_deep} or p3 = 31)"
    assert kept(left_deep) == 3


@settings(max_examples=500)
@given(st.text("ab%_.*\\", max_size=4), st.text("ab%_.", max_size=4))
def test_what_a_like_pattern_matches_begins_with_its_prefix(pattern: str, value: str) -> None:
    if like(pattern).matches(value):
        assert value.startswith(like_prefix(pattern))


@given(st.text("ab%_.*\\"))
def test_a_quoted_like_pattern_matches_only_itself(value: str) -> None:
    quoted = "".join(f"\\{character}" for character in value)
    assert like(quoted).matches(value)
    assert not like(quoted).matches(f"{value}a")
