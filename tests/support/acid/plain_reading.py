"""A reader of ACID directories without Spark: our directory selection, and pyorc for the files (which we never write with)."""

import io
from pathlib import Path
from typing import Any

import pyorc

from metastore.acid.names import SIDE_FILE_SUFFIX
from metastore.acid.side_files import flushed_length
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import DeltaDirectory, Listed, acid_state
from metastore.files import Files
from metastore.roots import local_path

RowId = tuple[int, int, int]


def rows(location: str | Path, write_ids: ValidWriteIdList) -> dict[RowId, tuple[Any, ...]]:
    """Return the rows of a snapshot by their ids; every event is checked to be in key order in its file."""
    root = local_path(str(location))
    assert root is not None
    state = acid_state(Files().listing(str(root)), write_ids, ValidTxnList.everything(), lambda path: (root / path).read_bytes())
    by_id: dict[RowId, tuple[Any, ...]] = {}
    deleted: set[RowId] = set()
    for directory in [*([state.base] if state.base else []), *state.deltas]:
        for file in directory.bucket_files or directory.files:
            for event in _events(root, file, directory.side_files):
                operation, original, bucket, row_id, current, row = event
                if not write_ids.is_valid(current):
                    continue
                if isinstance(directory, DeltaDirectory) and directory.is_delete:
                    assert operation == 2
                    assert row is None
                    deleted.add((original, bucket, row_id))
                else:
                    assert operation == 0
                    assert (original, bucket, row_id) not in by_id, "a ROW__ID twice"
                    by_id[original, bucket, row_id] = row
    return {key: row for key, row in sorted(by_id.items()) if key not in deleted}


def _events(root: Path, file: Listed, side_files: tuple[Listed, ...]) -> list[tuple[Any, ...]]:
    content = (root / file.path).read_bytes()
    side = file.path + SIDE_FILE_SUFFIX
    if any(side_file.path == side for side_file in side_files):
        content = content[:flushed_length((root / side).read_bytes(), side)]
    if not content:
        return []
    reader = pyorc.Reader(io.BytesIO(content))
    events = list(reader)
    keys = [(event[1], event[2], event[3], -event[4]) for event in events]
    assert keys == sorted(keys), f"{file.path} is not sorted"
    index = reader.user_metadata["hive.acid.key.index"].decode().rstrip(";").split(";")
    ends, at = [], 0
    for stripe in range(reader.num_of_stripes):
        at += len(reader.read_stripe(stripe))
        ends.append(",".join(str(part) for part in events[at - 1][1:4]))
    assert index == ends
    deletes = sum(event[0] == 2 for event in events)
    assert reader.user_metadata["hive.acid.stats"] == b"%d,0,%d" % (len(events) - deletes, deletes)
    return events
