"""The notes in the footers of ACID files. That real readers find them is shown where files are written."""

from metastore.acid.orc_footer import RowKey, acid_entries


def test_each_stripe_has_its_last_key_in_the_index() -> None:
    assert acid_entries([RowKey(1, 536870912, 9), RowKey(2, 536870912, 0)], 11, is_delete=True) == {
        "hive.acid.key.index": b"1,536870912,9;2,536870912,0;", "hive.acid.stats": b"0,0,11", "hive.acid.version": b"2"
    }


def test_an_empty_file_has_an_empty_index() -> None:
    assert acid_entries((), 0, is_delete=False) == {
        "hive.acid.key.index": b"", "hive.acid.stats": b"0,0,0", "hive.acid.version": b"2"
    }
