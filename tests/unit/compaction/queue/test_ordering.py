"""ORDER BY of a rebalance."""

import pytest

from metastore.compaction.queue.rules.ordering import SortColumn, sort_columns
from metastore.errors import InvalidRequestError


@pytest.mark.parametrize(("text", "columns"), [
    (None, ()), ("", ()), ("order by", ()),
    ("ORDER BY a", (SortColumn("a"),)),
    ("a DESC", (SortColumn("a", descending=True, nulls_first=True),)),
    ("Order  By `A b`, `c,d` asc nulls first ,e desc Nulls Last, `f``g`", (
        SortColumn("a b"), SortColumn("c,d", nulls_first=True), SortColumn("e", descending=True), SortColumn("f`g"))),
])
def test_columns(text, columns):
    assert sort_columns(text) == columns


@pytest.mark.parametrize("text", ["a,", ",a", "a b", "a + 1", "f(a)", "order by a; drop table t", "`a", "a desc asc", "nulls first a"])
def test_whatever_else_there_is_is_no_order(text):
    with pytest.raises(InvalidRequestError, match="cannot be understood"):
        sort_columns(text)
