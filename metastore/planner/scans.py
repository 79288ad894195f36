"""The plan of a scan: the files of a table's snapshot, and the rows that count in them.

Rule: the rules are those of ``acid_tables``; here they are only encoded. Small deletes are in the plan as bits, large
ones as files.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter

from metastore.acid.names import NO_BUCKET, parse_file
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.conjunction import conjunction
from metastore.acid_tables.delete_files import DeleteFiles
from metastore.acid_tables.deleted import deleted_rows
from metastore.acid_tables.footers import READERS, orc_tails
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.partitions import partition_key
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.sources import DataFile
from metastore.acid_tables.table import AcidTable
from metastore.acid_tables.time_travel import as_of_write_id
from metastore.acid_tables.visibility import visibility
from metastore.client import txn_calls
from metastore.client.partitions import partition_places, places_named
from metastore.client.scans import snapshot_directories
from metastore.errors import InvalidInputError
from metastore.files import Files
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.column_statistics import estimates
from metastore.planner.tables import acid_table, format_of, require_known
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)


class Laps:
    """The duration of each step, in milliseconds."""

    def __init__(self) -> None:
        self._at = perf_counter()
        self.times: dict[str, float] = {}

    def end(self, step: str) -> None:
        """Record the end of a step."""
        now = perf_counter()
        self.times[f"{step}_ms"] = round((now - self._at) * 1000, 2)
        self._at = now


@dataclass(frozen=True)
class TableSnapshot:
    """The part of a table that is read."""

    table: AcidTable
    write_ids: ValidWriteIdList
    directories: Sequence[Directory]


def plan(call: PlannerCall) -> Answer:
    """Return the plan of one scan.

    ``is_past``: the write ids are of a transaction that has ended, and ``txns`` of one that is open.
    Raises: NoSuchObjectError, InvalidOperationError, NotEnoughHistoryError; WriteConflictError for another definition.
    """
    laps, body = Laps(), call.body
    table = acid_table(call.client, body.table())
    require_known(table, body)
    laps.end("table")
    seen = snapshot_of(call, table, laps)
    answer = files_of(seen)
    deletes = DeleteFiles.of(call.files, [file for directory in seen.directories for file in directory.sources.deletes])
    events = deletes.events(file for directory in seen.directories for file in directory.sources.deletes)
    answer["deleted"] = None
    if events != 0:
        answer["deleted"] = _deleted(call.files, seen, deletes)
    laps.end("deletes")
    if body.has("limit"):
        _limit(call.files, table, answer, body.number("limit"))
    answer["row_counts"] = _row_counts(call.files, table, answer) if body.flag("count") else None
    laps.end("count")
    if body.has("statistics"):
        names = body.texts("statistics")
        answer["column_statistics"] = estimates(call, table, seen.write_ids, seen.directories, names)
        laps.end("statistics")
    _log.debug(
        "scan_planned",
        table=str(table.name),
        directories=len(seen.directories),
        files=len(answer["events"]),
        delete_events=events,
        **laps.times,
    )
    return answer


def snapshot_of(call: PlannerCall, table: AcidTable, laps: Laps) -> TableSnapshot:
    """Return the call's snapshot of a table, in the partitions that it asks for."""
    write_ids = write_ids_of(call, table)
    if not call.body.has("as_of"):
        return snapshot_at(call, table, write_ids, laps, is_past=call.body.flag("is_past"), by_write_id=False)
    return snapshot_at(call, table, _past(call, table, write_ids), laps, is_past=True)


def snapshot_at(
    call: PlannerCall,
    table: AcidTable,
    write_ids: ValidWriteIdList,
    laps: Laps,
    *,
    is_past: bool,
    by_write_id: bool = True,
) -> TableSnapshot:
    """Return the snapshot of a table by a list of its write ids.

    ``is_past``, ``by_write_id``: as for ``snapshot_directories``.
    """
    where = conjunction(call.body.values("partitions"), table.partition_keys)
    is_named = call.body.has("named")
    if is_named:
        places = places_named(call.client, table, call.body.texts("named"))
    else:
        places = partition_places(call.client, table, where)
    laps.end("partitions")
    txns = ValidTxnList.parse(call.body.text("txns"))
    directories = snapshot_directories(
        call.client,
        call.files,
        table,
        places,
        write_ids,
        txns,
        is_past=is_past,
        is_part=is_named or where is not None,
        by_write_id=by_write_id,
    )
    laps.end("listing")
    return TableSnapshot(table, write_ids, directories)


def write_ids_of(call: PlannerCall, table: AcidTable) -> ValidWriteIdList:
    """Return the write ids of a table in the call's snapshot. Raises: InvalidInputError."""
    body = call.body
    write_ids = ValidWriteIdList.parse(body.text("write_ids"))
    if write_ids.table.lower() != f"{table.name.db}.{table.name.table}":
        raise InvalidInputError(f"write_ids is of {write_ids.table}, not of {table.name.db}.{table.name.table}.")
    if body.has("own_write_id"):
        write_ids = write_ids.with_own(body.number("own_write_id"))
    return write_ids


def _past(call: PlannerCall, table: AcidTable, write_ids: ValidWriteIdList) -> ValidWriteIdList:
    as_of = call.body.body("as_of")
    if as_of.has("write_id"):
        return as_of_write_id(write_ids, as_of.number("write_id"))
    return write_ids_at(call, table, as_of.number("timestamp_ms"))


def write_ids_at(call: PlannerCall, table: AcidTable, timestamp_ms: int) -> ValidWriteIdList:
    """Return the write ids committed by a time. Raises: InvalidOperationError for a time that is not on record."""
    at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=timestamp_ms)
    return txn_calls.valid_write_ids_at(call.client, table.name, at)


def files_of(seen: TableSnapshot) -> Answer:
    """Return the files of a snapshot, and the conditions by which their insert events count."""
    visible = visibility([directory.state for directory in seen.directories], seen.write_ids, deletes=False)
    numbered = list(enumerate(seen.directories))
    events = [_file(file, at) for at, directory in numbered for file in directory.sources.events]
    sizes = {path: size for directory in seen.directories for path, size in _sizes(directory)}
    ids: list[Answer] = [
        {
            "path": file.path,
            "size": sizes[file.path],
            "dir": at,
            "write_id": file.write_id,
            "bucket": file.bucket,
            "first_row_id": file.first_row_id,
        }
        for at, directory in numbered
        for file in directory.sources.plain
    ]
    unnamed: list[Answer] = [
        {"path": path, "size": sizes[path], "dir": at, "write_id": None, "bucket": None, "first_row_id": None}
        for at, directory in numbered
        for path in directory.sources.unnamed
    ]
    storages: dict[str, int] = {}

    def storage(directory: Directory) -> int | None:
        stored_as = directory.stored_as or seen.table.file_format
        return storages.setdefault(stored_as.text(), len(storages)) if isinstance(stored_as, HiveStorage) else None

    return {
        "directories": [
            {
                "partition": directory.partition,
                "key": partition_key(directory.values),
                "values": list(directory.values),
                "location": directory.location,
                "format": format_of(directory.stored_as or seen.table.file_format),
                "storage": storage(directory),
                "deletes": bool(directory.sources.deletes),
            }
            for directory in seen.directories
        ],
        "storages": list(storages),
        "events": events,
        "cut": [
            {"path": file.path, "length": file.length, "dir": at}
            for at, directory in numbered
            for file in directory.sources.cut
        ],
        "plain": [*ids, *unnamed],
        "visible": _visible(visible.by_operation, visible.high_watermark, visible.hidden),
        "bytes": sum(file["size"] for file in (*events, *ids, *unnamed)),
    }


def _file(file: DataFile, directory: int) -> Answer:
    """Return a file with event columns. ``bucket``: the one of all its rows; None if the name does not tell."""
    bucket = parse_file(file.path.rpartition("/")[2]).bucket
    return {"path": file.path, "size": file.size, "dir": directory, "bucket": None if bucket == NO_BUCKET else bucket}


def _sizes(directory: Directory) -> Iterator[tuple[str, int]]:
    """Yield path and size of the files with rows."""
    state = directory.state
    parts = (*([state.base] if state.base else []), *state.insert_deltas)
    for file in (*state.originals, *(file for part in parts for file in part.files)):
        yield f"{directory.location}/{file.path}", file.size


def _visible(by_operation: bool, high_watermark: int | None, hidden: Sequence[int]) -> Answer:  # noqa: FBT001
    return {"not_delete": by_operation, "high_watermark": high_watermark, "hidden": list(hidden)}


def _deleted(files: Files, seen: TableSnapshot, deletes: DeleteFiles) -> Answer:
    """Return the deleted rows as bits, or the files that name them."""
    rows = deleted_rows(files, seen.directories, seen.write_ids, deletes)
    if rows is None:
        return delete_files(seen)
    return {"shift": rows.shift, "bits": base64.b64encode(rows.in_bytes()).decode()}


def delete_files(seen: TableSnapshot) -> Answer:
    """Return the files that name deleted rows, and the conditions by which their events count."""
    visible = visibility([directory.state for directory in seen.directories], seen.write_ids, deletes=True)
    return {
        "files": [
            _file(file, at) for at, directory in enumerate(seen.directories) for file in directory.sources.deletes
        ],
        "high_watermark": visible.high_watermark,
        "hidden": list(visible.hidden),
    }


def _row_counts(files: Files, table: AcidTable, answer: Answer) -> list[int] | None:
    """Count each directory's rows, if footers tell: nothing deleted, hidden, half written, all in ORC."""
    if not _footers_count(table, answer):
        return None
    counts = [0] * len(answer["directories"])
    listed = [*answer["events"], *answer["plain"]]
    for file, tail in zip(listed, orc_tails(files, [file["path"] for file in listed]), strict=True):
        counts[file["dir"]] += tail.rows
    return counts


def _footers_count(table: AcidTable, answer: Answer) -> bool:
    """Return True if a scan reads exactly as many rows as the footers count."""
    visible = answer["visible"]
    hides = visible["high_watermark"] is not None or visible["hidden"]
    hides = hides or (visible["not_delete"] and table.kind is TableKind.FULL_ACID)  # Only full ACID tables have events.
    is_orc = all(directory["format"] == "orc" for directory in answer["directories"])
    return is_orc and answer["deleted"] is None and not answer["cut"] and not hides


def _limit(files: Files, table: AcidTable, answer: Answer, most: int) -> None:
    """Leave out files that are not needed for ``most`` rows: the first files that have them are enough.

    Footers are read a few at a time: if the first files suffice, the others of a large table are not touched.
    """
    if not _footers_count(table, answer):
        return
    listed = [*answer["events"], *answer["plain"]]
    enough, rows = 0, 0
    while enough < len(listed) and rows < most:
        for tail in orc_tails(files, [file["path"] for file in listed[enough : enough + READERS]]):
            enough += 1
            rows += tail.rows
            if rows >= most:
                break
    events = len(answer["events"])
    answer["events"], answer["plain"] = listed[: min(enough, events)], listed[events:enough]
    answer["bytes"] = sum(file["size"] for file in listed[:enough])
