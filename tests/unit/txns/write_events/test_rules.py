"""The text for a written file."""

import pytest

from metastore.errors import InvalidRequestError
from metastore.txns.write_events.rules import encoded, encoded_of_insert


@pytest.mark.parametrize(("checksums", "cmroot", "texts"), [
    ((), "", ["f###d", "g###e"]), (("a1", "b2"), "", ["f###d", "g###e"]), ((), "s3a://b/cm", ["f###d", "g###e"]),
    (("a1", ""), "s3a://b/cm", ["f#a1#s3a://b/cm#d", "g###e"])])
def test_a_checksum_and_where_it_is_kept_come_together(checksums, cmroot, texts):
    assert encoded(["f", "g"], ["d", "e"], checksums, cmroot) == texts


@pytest.mark.parametrize("lists", [(["d"], ()), ((), ["a1"])])
def test_one_for_each_file(lists):
    with pytest.raises(InvalidRequestError, match="has 1 entries for 2 files"):
        encoded(["f", "g"], *lists)


def test_each_file_of_an_insert_has_a_checksum_or_none_has():
    with pytest.raises(InvalidRequestError, match="2 entries for 1 files"):
        encoded_of_insert(["file:/a"], ["1", "2"], "")
    assert len(encoded_of_insert(["file:/a"], [], "")) == 1
