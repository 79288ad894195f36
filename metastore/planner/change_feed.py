"""The plan of a scan of changes: its files, and the origin and time of each change."""

from collections.abc import Iterator

from metastore.acid.snapshots import ValidTxnList
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables import change_feed as rules
from metastore.acid_tables.change_feed import ChangeRange
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.table import AcidTable
from metastore.acid_tables.time_travel import as_of_write_id
from metastore.client.scans import snapshot_directories
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.scans import Laps, TableSnapshot, delete_files, files_of, snapshot_at, write_ids_at, write_ids_of
from metastore.planner.tables import acid_table, require_known
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
_MOST = 1_000_000


def changes(call: PlannerCall) -> Answer:
    """Return the plan of a scan of the rows that were inserted or deleted between two write ids, or two points in time.

    Raises: InvalidOperationError if they are not final, or rows have no ids; NotEnoughHistoryError.
    """
    laps = Laps()
    table = acid_table(call.client, call.body.table())
    table.require(TableKind.FULL_ACID, action="Reading changes")
    require_known(table, call.body)
    wanted = _range(call, table)
    laps.end("table")
    now = snapshot_at(call, table, wanted.until, laps, is_past=True)
    with_replaced = list(_with_replaced(call, wanted, now))
    seen = TableSnapshot(table, wanted.until, [directory for directory, _ in with_replaced])
    rules.require_changes(seen.directories, wanted)
    rules.require_ids(seen.directories)
    answer = files_of(seen)
    replaced_by = [write_id for _, write_id in with_replaced]
    changing = [by is not None or rules.can_have_deletes(directory, wanted) for directory, by in with_replaced]
    for group in ("events", "cut", "plain"):
        answer[group] = [
            file
            for file in answer[group]
            if changing[file["dir"]] or rules.can_have_inserts(seen.directories[file["dir"]], file["path"], wanted)
        ]
    answer |= {
        "deleted": delete_files(seen),
        "row_counts": None,
        "bytes": sum(file.get("size", 0) for group in ("events", "plain") for file in answer[group]),
        "changes": {
            "after": wanted.after,
            "late": list(wanted.late),
            "replaced_by": replaced_by,
            "times": _times(call, table, wanted),
        },
    }
    laps.end("files")
    _log.debug("changes_planned", table=str(table.name), files=len(answer["events"]), **laps.times)
    return answer


def _with_replaced(
    call: PlannerCall, wanted: ChangeRange, seen: TableSnapshot
) -> Iterator[tuple[Directory, int | None]]:
    """Yield the directories; overwritten ones also as they were before, with the write id of the overwrite.

    Raises: NotEnoughHistoryError if the Cleaner has removed their files.
    """
    txns = ValidTxnList.parse(call.body.text("txns"))
    latest: list[tuple[Directory, int | None]] = [(directory, None) for directory in seen.directories]
    while latest:
        yield from latest
        overwritten: dict[int, list[PartitionPlace]] = {}
        for directory, _ in latest:
            if (write_id := rules.overwritten_by(directory, wanted)) is not None:
                place = PartitionPlace(directory.partition, directory.values, directory.location, directory.stored_as)
                overwritten.setdefault(write_id, []).append(place)
        latest = []
        for write_id, places in overwritten.items():
            before = as_of_write_id(wanted.until, write_id - 1)
            older = snapshot_directories(
                call.client, call.files, seen.table, places, before, txns, is_past=True, is_part=True
            )
            latest += [(directory, write_id) for directory in older]


def _range(call: PlannerCall, table: AcidTable) -> ChangeRange:
    body = call.body
    if not body.has("after_ms"):
        last = body.number("last") if body.has("last") else None
        return rules.between(write_ids_of(call, table), body.number("first"), last)
    before = write_ids_at(call, table, body.number("after_ms"))
    if not body.has("until_ms"):
        return ChangeRange(before, write_ids_of(call, table))
    return ChangeRange(before, write_ids_at(call, table, body.number("until_ms")))


def _times(call: PlannerCall, table: AcidTable, wanted: ChangeRange) -> list[list[int]]:
    """Return write ids with their commit times, in milliseconds, as far as they are on record."""
    name = table.name
    after = min((number - 1 for number in wanted.late), default=wanted.after)
    listed = call.client.metastore_table_history(name.catalog, name.db, name.table, max(0, after), _MOST, aborted=False)
    return sorted([txn.writeId, txn.committedAt] for txn in listed if wanted.has_any(txn.writeId, txn.writeId))
