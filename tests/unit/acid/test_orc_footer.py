"""Footer amendments on files of a writer that is not ours, read by two readers that are not ours."""

import io

import pyarrow as pa
import pyorc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from metastore.acid.orc_footer import MAX_TAIL, RowKey, acid_entries, amended

CODECS = ["uncompressed", "zlib", "snappy", "zstd", "lz4"]


def _file(rows: int, codec: str, **options: int) -> bytes:
    out = io.BytesIO()
    columns = {"a": pa.array(range(rows), pa.int64()), "b": pa.array([f"text {one % 97}" for one in range(rows)], pa.string())}
    orc.write_table(pa.table(columns), out, compression=codec, **options)
    return out.getvalue()


def _amend(content: bytes, entries: dict[str, bytes]) -> bytes:
    change = amended(content[-MAX_TAIL:], entries)
    return content[: len(content) - change.cut] + change.appended


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("rows", [0, 1, 50_000])
def test_entries_are_added_and_rows_stay(codec: str, rows: int) -> None:
    content = _file(rows, codec)
    entries = acid_entries([RowKey(1, 536870912, rows - 1)], rows, is_delete=False)

    changed = _amend(content, entries)

    reader = pyorc.Reader(io.BytesIO(changed))
    assert reader.user_metadata == entries
    assert reader.user_metadata["hive.acid.key.index"] == b"1,536870912,%d;" % (rows - 1)
    assert reader.user_metadata["hive.acid.stats"] == b"%d,0,0" % rows
    assert len(reader) == rows
    assert orc.ORCFile(io.BytesIO(changed)).read().equals(orc.ORCFile(io.BytesIO(content)).read())
    if rows:
        assert changed.startswith(content[: orc.ORCFile(io.BytesIO(content)).content_length])


@pytest.mark.parametrize("codec", CODECS)
def test_an_index_of_many_stripes_needs_several_chunks(codec: str) -> None:
    content = _file(1000, codec, compression_block_size=65536)
    keys = [RowKey(one, 536870912, one) for one in range(5000)]

    reader = pyorc.Reader(io.BytesIO(_amend(content, acid_entries(keys, 1000, is_delete=True))))

    assert reader.user_metadata["hive.acid.key.index"].count(b";") == 5000
    assert reader.user_metadata["hive.acid.stats"] == b"0,0,1000"
    assert len(list(reader)) == 1000


def test_entries_can_be_added_twice() -> None:
    once = _amend(_file(10, "zlib"), {"one": b"1"})

    assert pyorc.Reader(io.BytesIO(_amend(once, {"two": b"2"}))).user_metadata == {"one": b"1", "two": b"2"}


def test_an_empty_file_has_an_empty_index() -> None:
    assert acid_entries((), 0, is_delete=False) == {
        "hive.acid.key.index": b"", "hive.acid.stats": b"0,0,0", "hive.acid.version": b"2"
    }


@given(st.dictionaries(st.text(st.characters(min_codepoint=1, codec="utf-8"), min_size=1, max_size=20), st.binary(max_size=300), max_size=5), st.sampled_from(CODECS))
def test_any_entries_are_read_back(entries: dict[str, bytes], codec: str) -> None:
    assert pyorc.Reader(io.BytesIO(_amend(_file(3, codec), entries))).user_metadata == entries


def test_fields_of_every_wire_type_survive_in_the_postscript() -> None:
    """A later ORC version may add any: varint 9, 64 bits 10, bytes 11, 32 bits 12."""
    content = _file(3, "snappy")
    size = content[-1]
    extra = b"\x48\x96\x01" + b"\x51" + b"8 bytes!" + b"\x5a\x03abc" + b"\x65" + b"four"
    postscript = content[-1 - size : -1] + extra
    content = content[: -1 - size] + postscript + bytes([len(postscript)])

    changed = _amend(content, {"one": b"1"})

    assert extra in changed[-changed[-1] - 1 :]
    assert pyorc.Reader(io.BytesIO(changed)).user_metadata == {"one": b"1"}
