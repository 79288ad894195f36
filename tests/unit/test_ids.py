"""Names as users write them."""

import pytest

from metastore.ids import split_table_name


@pytest.mark.parametrize(("text", "names"), [("sales.orders", ("sales", "orders")), ("orders", (None, "orders"))])
def test_a_table_is_written_with_or_without_its_database(text, names):
    assert split_table_name(text) == names


@pytest.mark.parametrize("text", ["", ".", "a.", ".b", "a.b.c", "a..b"])
def test_anything_else_is_refused_with_its_text(text):
    with pytest.raises(ValueError, match="is not a table's name: write db.table"):
        split_table_name(text)
