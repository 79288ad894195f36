"""What a client writes into filters, patterns and serialized expressions costs time and memory in proportion."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.catalog.model import Table
from metastore.catalog.rules import kryo
from metastore.catalog.rules.like import LONGEST_PATTERN, like
from metastore.catalog.rules.names import LONGEST_PATTERN as LONGEST_NAME_PATTERN
from metastore.catalog.rules.names import pattern_regex
from metastore.catalog.rules.partition_expression import parse_expression
from metastore.catalog.rules.partition_filter import parse_filter
from metastore.catalog.rules.partition_predicate import Unknown, keeps
from metastore.catalog.rules.partition_syntax import DEEPEST, PartitionKey
from metastore.catalog.rules.table_filter import TableFilter
from metastore.errors import InvalidRequestError
from metastore.ids import TableName
from metastore.partition_names import DEFAULT_PARTITION
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.partitions import Shape

KEYS = [PartitionKey("dt", "string")]
WILDCARDS = "%a" * 30 + "b"
TEXT = "a" * 10_000


def quick(run: Callable[[], Any]) -> Any:
    """Run a function within a limit of time. Its input took for ever once and takes milliseconds now."""
    started = time.thread_time()
    found = run()
    assert time.thread_time() - started < 10
    return found


def test_many_wildcards_do_not_backtrack_in_any_filter() -> None:
    predicate = parse_filter(f"dt like '{WILDCARDS}'", KEYS)
    assert quick(lambda: keeps(predicate, [TEXT])) is False
    table = Table(TableName("hive", "db", "t"), {}, "MANAGED_TABLE", TEXT, ttypes.PrincipalType.USER)
    for ignoring_case in ("", "(?i)"):
        found = TableFilter.of(f"hive_filter_field_owner__ like '{ignoring_case}{WILDCARDS}'")
        assert quick(lambda found=found: found.accepts(table)) is False
    assert quick(lambda: Shape(include=WILDCARDS).parameters({TEXT: ""})) == {}


@given(st.text("ab%_", max_size=8), st.text("abAB", max_size=8), st.booleans())
def test_like_is_what_it_says(pattern: str, text: str, ignore_case: bool) -> None:
    def fits(left: str, rest: str) -> bool:
        if not left:
            return not rest
        if left[0] == "%":
            return any(fits(left[1:], rest[at:]) for at in range(len(rest) + 1))
        same = rest and (left[0] in {"_", rest[0]} or (ignore_case and left[0] == rest[0].lower()))
        return bool(same) and fits(left[1:], rest[1:])

    assert like(pattern, ignore_case=ignore_case).matches(text) is fits(pattern, text)


def test_patterns_that_are_longer_than_anything_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="LIKE pattern of 10001 characters is too long"):
        like("a" * (LONGEST_PATTERN + 1))
    for pattern in ("a" * (LONGEST_NAME_PATTERN + 1), "a\0"):
        with pytest.raises(InvalidRequestError, match="A name pattern has at most 4000 characters"):
            pattern_regex(pattern)
    assert pattern_regex("." + "*" * (LONGEST_NAME_PATTERN - 1)) == "^(.*)$"


def test_filters_are_bounded_in_words_parentheses_and_depth() -> None:
    assert len(quick(lambda: parse_filter(" or ".join(["dt = '1'"] * 10_000), KEYS)).parts) == 10_000
    with pytest.raises(InvalidRequestError, match="at most 100000 words"):
        parse_filter(" or ".join(["dt = '1'"] * 30_000), KEYS)
    with pytest.raises(InvalidRequestError, match="at most 10000 parentheses"):
        parse_filter("(" * 20_000 + "dt = '1'" + ")" * 20_000, KEYS)
    deep = "dt = '1'"
    for word in ["and", "or"] * DEEPEST:
        deep = f"dt = '2' {word} ({deep})"
    with pytest.raises(InvalidRequestError, match="at most 200 levels deep"):
        parse_filter(deep, KEYS)


def text(value: str) -> bytes:
    return value[:-1].encode() + bytes([ord(value[-1]) | 0x80])


class Kryo4:
    """Writes expressions as Hive 2.3 does, and as Hive never would."""

    def __init__(self) -> None:
        self.classes: list[str] = []

    def kind(self, name: str) -> bytes:
        if name in self.classes:
            return bytes([1, self.classes.index(name)])
        self.classes.append(name)
        return bytes([1, len(self.classes) - 1]) + text(name)

    def function(self, udf: str, *children: bytes) -> bytes:
        """Encode a function's fields; ``children`` have been written before, as elements."""
        return (self.kind("java.util.ArrayList") + b"\1" + bytes([len(children)]) + b"".join(children)
                + self.kind(f"generic.{udf}") + b"\1\0" + b"\0" + b"\0")


def with_children(children: Callable[[Kryo4], bytes], count: int) -> bytes:
    """AND of what ``children`` writes."""
    writer = Kryo4()
    head = b"\1" + writer.kind("java.util.ArrayList") + b"\1" + bytes([count])
    return head + children(writer) + writer.kind("generic.GenericUDFOPAnd") + b"\1\0" + b"\0" + b"\0"


def test_a_list_has_no_more_elements_than_there_are_bytes() -> None:
    count = bytes([0xC0]) + b"\x80\x80\x80\x80\x80\x01"  # 2**41 elements, all of the same class: null, of no bytes
    function = "org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc"
    data = b"\1\0" + text(function) + b"\1" + b"\1\1" + text("java.util.ArrayList") + b"\1" + count + b"\0" * 100
    found = parse_expression(data, KEYS, DEFAULT_PARTITION)
    assert isinstance(found, Unknown)
    assert "has a list or text of" in found.reason


def test_an_expression_that_contains_itself_is_not_walked() -> None:
    data = with_children(lambda writer: writer.kind("plan.ExprNodeGenericFuncDesc") + b"\2", 1)
    found = parse_expression(data, KEYS, DEFAULT_PARTITION)
    assert isinstance(found, Unknown)
    assert "contains itself" in found.reason


def test_references_that_unfold_to_more_than_was_sent_are_counted() -> None:
    seen = 1  # the root, its list

    def doubled(writer: Kryo4, levels: int) -> bytes:
        nonlocal seen
        seen += 2
        own = seen
        head = writer.kind("plan.ExprNodeGenericFuncDesc") + b"\1" + writer.kind("java.util.ArrayList") + b"\1"
        inner = b"\0"
        if levels:
            child = doubled(writer, levels - 1)
            inner = b"\2" + child + writer.kind("plan.ExprNodeGenericFuncDesc") + bytes([own + 1 + 2])
        udf = writer.kind("generic.GenericUDFOPAnd") + b"\1\0"
        seen += 1
        return head + inner + udf + b"\0" + b"\0"

    data = with_children(lambda writer: doubled(writer, 30), 1)
    found = quick(lambda: parse_expression(data, KEYS, DEFAULT_PARTITION))
    assert isinstance(found, Unknown)
    assert "more than 100000 parts" in found.reason


def test_lists_within_lists_are_not_followed_for_ever() -> None:
    def nested(writer: Kryo4) -> bytes:
        return (writer.kind("java.util.ArrayList") + b"\1\1") * 5000

    with pytest.raises(kryo.UnreadableError, match="nested deeper than 100"):
        kryo.read(with_children(nested, 1))


def test_a_text_is_a_text() -> None:
    def column(writer: Kryo4) -> bytes:
        return writer.kind("plan.ExprNodeColumnDesc") + b"\1" + b"\2"  # the root in the place of the column's name

    with pytest.raises(kryo.UnreadableError, match="in place of a text"):
        kryo.read(with_children(column, 1))
