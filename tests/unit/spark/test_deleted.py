"""Delete events as bits: what is looked up is exactly what was deleted, or there are no bits. Hand-made files, no Spark."""

from pathlib import Path

import pyorc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metastore.acid.bucket import encode
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables import deleted
from metastore.acid_tables.delete_files import DeleteFiles
from metastore.acid_tables.deleted import Chunk, DeletedRows, deleted_rows
from metastore.acid_tables.listing import acid_directories
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.table import AcidTable
from metastore.files import Files
from metastore.ids import table_name

_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<v:int>>")
_MARK = 20
_row_ids = st.one_of(st.integers(0, 200), st.integers((1 << 22) - 70, (1 << 22) + 70), st.integers(1 << 33, (1 << 33) + 9),
                     st.just((1 << 40) + 5))
# Which directory, write id, bucket number, row id; and who deletes it
_rows = st.tuples(st.integers(0, 2), st.integers(1, 6), st.sampled_from([3, encode(0), encode(3), encode(3, 2)]), _row_ids)
_events = st.lists(st.tuples(_rows, st.integers(7, _MARK + 2)), max_size=60)


def _deleted(root: Path, events: list, **lists: object) -> DeletedRows | None:
    for place, _, _, _ in {(row[0], 0, 0, 0) for row, _ in events}:
        mine = sorted((current, *row[1:]) for row, current in events if row[0] == place)
        for current in {event[0] for event in mine}:
            _write(root / f"p={place}" / f"delete_delta_{current:07d}_{current:07d}_0000",
                   [event for event in mine if event[0] == current])
    return _read(root, **lists)


def _write(delta: Path, events: list) -> None:
    delta.mkdir(parents=True)
    with (delta / "bucket_00000").open("wb") as out, pyorc.Writer(out, _EVENT) as writer:
        writer.writerows([(2, write_id, bucket, row_id, by, None) for by, write_id, bucket, row_id in events])


def _read(root: Path, **lists: object) -> DeletedRows | None:
    table = AcidTable(name=table_name("db", "t"), kind=TableKind.FULL_ACID, location=str(root), columns=(), partition_keys=(),
                      bucket_columns=(), bucket_count=0, bucketing_version=2, file_format="orc", parameters={})
    places = [PartitionPlace(f"p={one}", (str(one),), f"{root}/p={one}") for one in range(3)]
    write_ids = ValidWriteIdList("db.t", _MARK, **lists)
    for place in places:
        Path(place.location).mkdir(parents=True, exist_ok=True)
    directories = acid_directories(Files(), table, places, write_ids, ValidTxnList.everything())
    deletes = DeleteFiles.of(Files(), [file for one in directories for file in one.sources.deletes])
    return deleted_rows(Files(), directories, write_ids, deletes)


def _holds(rows: DeletedRows, directory: int, write_id: int, bucket: int, row_id: int) -> bool:
    """Evaluate the expression of a scan, in Python."""
    chunk = Chunk(write_id << 31 | bucket, directory << 41 | row_id >> 22)
    place = ((chunk.version ^ chunk.part << rows.shift) & (1 << 63) - 1) % len(rows.versions)
    word = rows.starts[place] + ((row_id & (1 << 22) - 1) >> 6)
    return bool((rows.versions[place], rows.parts[place]) == chunk and word < rows.ends[place]
                and int(rows.words[word]) >> (row_id & 63) & 1)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=_events, others=st.lists(_rows, max_size=40))
def test_exactly_the_rows_with_a_visible_event_are_deleted(tmp_path_factory: pytest.TempPathFactory, events: list, others: list) -> None:
    rows = _deleted(tmp_path_factory.mktemp("table"), events)

    gone = {row for row, current in events if current <= _MARK}
    assert rows is not None
    assert {row for row in {*others, *(row for row, _ in events)} if _holds(rows, *row)} == gone & {*others, *gone}


def test_events_of_transactions_that_are_not_seen_do_not_count(tmp_path: Path) -> None:
    events = [((0, 1, encode(0), 5), 7), ((0, 1, encode(0), 6), 8)]

    rows = _deleted(tmp_path, events, invalid=(8,))

    assert rows is not None
    assert [_holds(rows, *row) for row, _ in events] == [True, False]


def test_of_a_directory_of_several_transactions_only_the_events_that_are_seen_count(tmp_path: Path) -> None:
    """As a minor compaction and a streaming writer leave them: some may be aborted, or later than the snapshot."""
    by = [7, 8, 9, _MARK, _MARK + 1, 25]
    _write(tmp_path / "p=0" / "delete_delta_0000007_0000025", [(current, 1, encode(0), current) for current in by])

    rows = _read(tmp_path, invalid=(8,))

    assert rows is not None
    assert [current for current in by if _holds(rows, 0, 1, encode(0), current)] == [7, 9, _MARK]


def test_what_the_name_of_a_delta_tells_is_not_asked_of_its_events(tmp_path: Path) -> None:
    _write(tmp_path / "p=0" / "delete_delta_0000007_0000007_0000", [(_MARK + 5, 1, encode(0), 5)])

    rows = _read(tmp_path)

    assert rows is not None
    assert _holds(rows, 0, 1, encode(0), 5)


@pytest.mark.parametrize(("limit", "value"), [("MAX_EVENTS", 1), ("MAX_WORDS", 1), ("MAX_CHUNKS", 1), ("_MAX_WRITE_ID", _MARK)])
def test_where_bits_would_take_too_much_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(deleted, limit, value)

    assert _deleted(tmp_path, [((0, 1, encode(0), 5), 7), ((1, 1, encode(0), 64), 7)]) is None


def test_many_chunks_find_places_where_no_two_meet(tmp_path: Path) -> None:
    events = [((0, write_id, encode(bucket), write_id * bucket), 7) for write_id in range(1, 6) for bucket in range(60)]

    rows = _deleted(tmp_path, events)

    assert rows is not None
    assert all(_holds(rows, *row) for row, _ in events)
    assert not any(_holds(rows, *row[:3], row[3] + 1) for row, _ in events)
