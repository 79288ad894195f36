"""Times of every age through the writer: in parts with and without fractions before 1970, in every compression."""

import io

import pyarrow as pa
import pyorc
import pytest

from metastore.acid_tables.orc_rows import OrcRows
from metastore.acid_tables.orc_tail import HYBRID, Tail, numbers
from metastore.streaming.orc_segments import COMPRESSIONS, Segments
from metastore.streaming.orc_writer import OrcWriter
from tests.support.acid.time_vectors import time_vectors

TIMES = [one.time for one in time_vectors() if not one.refusal]
ROWS = pa.table({
    "n": pa.array(range(len(TIMES))), "t": pa.array(TIMES, pa.timestamp("us")), "d": pa.array([at.date() for at in TIMES]),
    "l": pa.array([[at, None] if at.year % 3 else None for at in TIMES], pa.list_(pa.timestamp("us"))),
    "s": pa.array([{"x": "x", "t": at} for at in TIMES], pa.struct([("x", pa.string()), ("t", pa.timestamp("us"))])),
    "m": pa.array([[("k", at)] for at in TIMES], pa.map_(pa.string(), pa.timestamp("us")))})
LATE = ROWS.slice(len(TIMES) - 4)


def written(tables, compression):
    out, whole = io.BytesIO(), Segments()
    writer = OrcWriter(out, compression)
    for table in tables:
        writer.write(table.combine_chunks().to_batches()[0])
    for part in writer.close():
        whole.add(part.end, part.start)
    out.write(whole.tail(writer.size, {}))
    return out


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("tables", [[ROWS], [LATE], [LATE, ROWS, LATE], [ROWS.slice(0, 3), LATE, *[ROWS] * 60]], ids=["early", "late", "between", "many"])
def test_times_come_back(tables, compression):
    out = written(tables, compression)
    rows = OrcRows(out)
    found = pa.Table.from_batches([rows.read_stripe(at) for at in range(rows.nstripes)])
    assert found.to_pylist() == pa.concat_tables(tables).to_pylist()
    assert rows.read_stripe(0, ["s.t"]).to_pylist() == [{"s": {"t": row["t"]}} for row in found.to_pylist()[:rows.read_stripe(0).num_rows]]
    assert numbers(Tail.of(out).footer)[11] == HYBRID


def test_another_reader_sees_whole_seconds_and_fractions_that_are_not_negative():
    class Parts(pyorc.converters.ORCConverter):
        from_orc = staticmethod(lambda seconds, nanoseconds, _zone: (seconds, nanoseconds))
        to_orc = staticmethod(lambda value, _zone: value)

    rows = ROWS.select(["t"]).filter(pa.compute.greater(ROWS["t"], pa.scalar(TIMES[12], pa.timestamp("us"))))
    found = [row[0] for row in pyorc.Reader(written([rows], "zlib"), converters={pyorc.TypeKind.TIMESTAMP: Parts})]
    microseconds = rows["t"].cast(pa.int64()).to_pylist()
    assert found == [(one // 1_000_000, one % 1_000_000 * 1000) for one in microseconds]


def test_a_footer_that_is_longer_than_a_guess_is_read():
    columns = {f"a_long_name_of_a_column_{number}": ROWS["t"] for number in range(400)}
    out = written([pa.table(columns)], "uncompressed")
    assert OrcRows(out).read_stripe(0, ["a_long_name_of_a_column_7"]).column(0).to_pylist() == TIMES
