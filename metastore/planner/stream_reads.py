"""Calls of a stream that reads a table: its limit, and the files with the rows of some write ids."""

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables import appended as rules
from metastore.acid_tables.appended import Range
from metastore.client import txn_calls
from metastore.errors import InvalidOperationError
from metastore.ids import TableName
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.scans import Laps, files_of, snapshot_at, write_ids_of
from metastore.planner.tables import acid_table, require_known
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
_UNCHANGING = frozenset({"insert", "reserve"})
_MOST = 1_000_000


def settled(call: PlannerCall) -> Answer:
    """Return the write id up to which all have ended. ``most``: at most so many transactions after ``after``."""
    name = call.body.table()
    text = f"{name.db}.{name.table}"
    write_ids = txn_calls.valid_write_ids(call.client, None, [text])[text]
    after, most = call.body.number("after", 0), call.body.number("most") if call.body.has("most") else None
    return {"write_id": rules.settled(write_ids, after, most)}


def appended(call: PlannerCall) -> Answer:
    """Return the plan of a scan of the rows that were added with write ids above ``after``, up to ``up_to``.

    Raises: InvalidOperationError if rows were changed, unless ``skips_changes``; NotEnoughHistoryError.
    """
    laps, body = Laps(), call.body
    table = acid_table(call.client, body.table())
    table.require(TableKind.FULL_ACID, action="Reading a stream")
    require_known(table, body)
    laps.end("table")
    wanted = Range(body.number("after"), body.number("up_to"))
    # The files from before a compaction are read while they exist: rows may have been deleted since.
    seen = snapshot_at(call, table, write_ids_of(call, table), laps, is_past=True)
    if seen.write_ids.high_watermark < wanted.up_to:
        raise InvalidOperationError(
            f"{table.name} has write ids up to {seen.write_ids.high_watermark}, and the stream has come to "
            f"{wanted.up_to}: the table is not what it was, start the stream with a new checkpoint."
        )
    changes = rules.changes(seen.directories, wanted, seen.write_ids)
    record = _record(call, table.name, changes.unclear) if changes.unclear else {}
    left_out = rules.changed(str(table.name), changes, record, skips=body.flag("skips_changes"))
    answer = files_of(seen)
    places = [directory.location for directory in seen.directories]
    for group in ("events", "cut", "plain"):
        answer[group] = [file for file in answer[group] if rules.is_in(places[file["dir"]], file["path"], wanted)]
    answer["plain"] = [file for file in answer["plain"] if file["write_id"] is None or file["write_id"] not in left_out]
    visible = answer["visible"]
    visible["after"], visible["high_watermark"] = wanted.after, wanted.up_to
    visible["hidden"] = sorted({*visible["hidden"], *left_out})
    answer |= {"deleted": None, "row_counts": None, "bytes": sum(file.get("size", 0) for file in answer["events"])}
    laps.end("files")
    _log.debug("stream_planned", table=str(table.name), files=len(answer["events"]), **laps.times)
    return answer


def _record(call: PlannerCall, name: TableName, write_ids: frozenset[int]) -> dict[int, bool]:
    """Map write ids to True if their transaction changed existing rows, as far as the history has them.

    A write id that the history does not have is missing: the changes of its transaction are unknown.
    """
    listed = call.client.metastore_table_history(
        name.catalog, name.db, name.table, min(write_ids) - 1, _MOST, aborted=True
    )
    changing = {txn.writeId: not txn.aborted and not _UNCHANGING.issuperset(txn.operations) for txn in listed}
    cut = {txn.writeId for txn in listed if not txn.complete}
    return {write_id: changed for write_id, changed in changing.items() if changed or write_id not in cut}
