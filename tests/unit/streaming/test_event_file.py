"""Files of several transactions: whatever is flushed, given up or left open, three readers see just what counts."""

import io
import math
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha512

import pyarrow as pa
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from metastore.acid.bucket import encode
from metastore.files import Files
from metastore.streaming.event_file import InsertFile
from metastore.streaming.orc_segments import COMPRESSIONS, Segments
from metastore.streaming.orc_statistics import merged

ROW = pa.struct([("n", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(10, 2)), ("f", pa.float64()), ("day", pa.date32()),
                 ("t", pa.timestamp("us")), ("b", pa.bool_()), ("x", pa.binary()), ("l", pa.list_(pa.int32()))])


def _rows(*numbers):
    return pa.array([{"n": n, "s": f"text {n % 7}", "d": Decimal(n) / 4, "f": n / 8, "day": date.fromordinal(700000 + n),
                      "t": datetime(2024, 1, 1, microsecond=n), "b": n % 2 == 0, "x": b"x" * (n % 5), "l": [n] * (n % 3)}
                     for n in numbers], ROW)


def _length(side):
    return int.from_bytes(side.read_bytes()[-8:], "big")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_flush_ends_with_a_whole_file(tmp_path, compression):
    file = InsertFile(Files(), str(tmp_path), 3, ROW, compression=compression, is_shared=True)
    data, side = tmp_path / "bucket_00003", tmp_path / "bucket_00003_flush_length"
    assert side.read_bytes() == bytes(8)
    kept = []
    for write_id in range(1, 5):
        file.insert(write_id, _rows(*range(write_id * 100, write_id * 100 + 40)))
        file.insert(write_id, _rows(7))
        if write_id == 2:
            file.abandon()
            continue
        file.flush()
        kept += [(write_id, number, number) for number in range(41)]
        content = data.read_bytes()[:_length(side)]
        reader = pyorc.Reader(io.BytesIO(content))
        assert [(one[1], one[3], one[3]) for one in reader] == kept
        assert set(orc.ORCFile(io.BytesIO(content)).read()["bucket"].to_pylist()) == {encode(3)}
        assert reader.user_metadata["hive.acid.key.index"].decode() == "".join(
            f"{one},{encode(3)},40;" for one in sorted({key[0] for key in kept}))
    file.insert(5, _rows(1))

    assert file.close()

    assert not side.exists()
    assert [one[1:4:2] for one in pyorc.Reader(io.BytesIO(data.read_bytes()))] == [key[:2] for key in kept]
    assert orc.ORCFile(str(data)).read().column("row").to_pylist()[:40] == _rows(*range(100, 140)).to_pylist()


def test_stripes_within_a_transaction_have_their_keys(tmp_path, monkeypatch):
    monkeypatch.setattr("metastore.streaming.orc_writer._STRIPE_BYTES", 64 * 1024)
    kind = pa.struct([("s", pa.string())])
    file = InsertFile(Files(), str(tmp_path), 0, kind, compression="zlib")
    for block in range(20):
        file.insert(9, pa.array([{"s": sha512(b"%d-%d" % (block, row)).hexdigest()} for row in range(1000)], kind))
    file.flush()
    file.close()

    reader = pyorc.Reader(io.BytesIO((tmp_path / "bucket_00000").read_bytes()))
    assert reader.num_of_stripes > 3
    ends, at = [], 0
    for stripe in range(reader.num_of_stripes):
        at += len(reader.read_stripe(stripe))
        ends.append(f"9,{encode(0)},{at - 1};")
    assert reader.user_metadata["hive.acid.key.index"].decode() == "".join(ends)


def test_a_file_in_which_nobody_committed_is_to_be_removed(tmp_path):
    file = InsertFile(Files(), str(tmp_path), 0, ROW, compression="snappy", is_shared=True)
    file.insert(1, _rows(1))
    assert not file.close()


def test_nothing_is_written_over_another_file(tmp_path):
    (tmp_path / "bucket_00000").touch()
    with pytest.raises(FileExistsError):
        InsertFile(Files(), str(tmp_path), 0, ROW, compression="snappy")


def test_a_file_on_an_object_store_cannot_be_shared():
    with pytest.raises(OSError, match="can append"):
        InsertFile(Files(), "memory://x", 0, ROW, compression="snappy", is_shared=True)


def test_a_file_on_another_store_is_written_whole():
    import fsspec

    file = InsertFile(Files(), "memory://some/delta_1_1_0", 0, ROW, compression="snappy")
    file.insert(1, _rows(1, 2))
    file.flush()
    assert file.close()
    with fsspec.open("memory://some/delta_1_1_0/bucket_00000") as written:
        assert [one[3] for one in pyorc.Reader(io.BytesIO(written.read()))] == [0, 1]


VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1), pa.float64(): st.floats(width=64), pa.string(): st.text(max_size=5),
    pa.decimal128(10, 2): st.decimals(-1000, 1000, places=2), pa.date32(): st.dates(), pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=5)}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_statistics_never_exclude_a_value_that_is_there(kind, data):
    """The whole file's, merged, against those of one writer that wrote the same values in one part."""
    column = st.lists(st.none() | VALUES[kind], max_size=4)
    parts = data.draw(st.lists(column, min_size=2, max_size=4).filter(any))
    segments, content = Segments(), b""
    for part in parts:
        out = io.BytesIO()
        with orc.ORCWriter(out) as writer:
            writer.write(pa.table({"c": pa.array(part, kind)}))
        segments.add(out.getvalue(), len(content))
        content += out.getvalue()
    whole = io.BytesIO()
    together = [value for part in parts for value in part]
    with orc.ORCWriter(whole) as writer:
        writer.write(pa.table({"c": pa.array(together, kind)}))

    content += segments.tail(len(content), {})

    read = pyorc.Reader(io.BytesIO(content))
    assert [repr(row[0]) for row in read] == [repr(row[0]) for row in pyorc.Reader(io.BytesIO(whole.getvalue()))]
    found, expected = read[1].statistics, pyorc.Reader(io.BytesIO(whole.getvalue()))[1].statistics
    assert found["number_of_values"] == expected["number_of_values"]
    assert found["has_null"] == expected["has_null"]
    if any(isinstance(value, float) and math.isnan(value) for value in together):
        return
    for bound in ("minimum", "maximum"):
        if found.get(bound) is not None:
            assert found[bound] == expected[bound]


def test_parts_without_values_say_nothing_of_bounds():
    assert merged(b"\x08\x00\x50\x01", b"\x08\x02\x12\x04\x08\x02\x10\x04\x50\x00") == b"\x08\x02\x50\x01\x12\x04\x08\x02\x10\x04"
    assert merged(b"\x08\x01\x50\x00", b"\x08\x02\x12\x04\x08\x02\x10\x04\x50\x00") == b"\x08\x03\x50\x00\x12\x00"


def test_a_footer_that_is_not_remembered_whole_is_no_footer():
    out = io.BytesIO()
    orc.write_table(pa.table({"a": [1]}), out)
    with pytest.raises(ValueError, match="takes more than 60 bytes"):
        Segments().add(out.getvalue()[-60:], 0)
    with pytest.raises(ValueError, match="no part"):
        Segments().tail(0, {})
