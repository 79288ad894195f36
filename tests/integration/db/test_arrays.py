"""Lists as PostgreSQL reads them back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.db.arrays import bigints, columns, literal

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)) | st.sampled_from('",\\{}\n\t \'%'))


@pytest.mark.parametrize("texts", [
    [], [""], ["a"], ["a", "b"], ["NULL", "null"], [None], ["a", None], ['"'], ['a","b'], ["\\"], ["{}", ",", " x "],
    ["'", "%s", "%(a)s", "$1"], ["zeile\nzwei\t"], ["日本", "ß"]])
def test_texts_arrive_as_they_are(database, texts):
    assert database.once("SELECT %s::text[]", (literal(texts),)) == [(texts,)]


def test_any_texts_arrive_as_they_are(database):
    @given(st.lists(TEXT | st.none()))
    def check(texts):
        assert database.once("SELECT %s::text[]", (literal(texts),)) == [(texts,)]

    check()


def test_numbers_arrive_as_they_are(database):
    numbers = [0, -1, None, 2**63 - 1]
    assert database.once("SELECT %s::bigint[]", (literal(numbers),)) == [(numbers,)]
    assert database.once("SELECT %s::bigint[]", (bigints([5, 2**40]),)) == [([5, 2**40],)]


def test_rows_become_columns():
    assert columns([(1, "a", None), (2, 'b"', 7)], 3) == ["{1,2}", '{"a","b\\""}', "{NULL,7}"]
    assert columns([], 2) == ["{}", "{}"]
