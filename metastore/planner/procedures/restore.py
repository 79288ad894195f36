"""The procedure CALL restore: a table gets an earlier state, by a statement that the engine runs as any other.

Rule: the planner checks that the point is still readable, with the rules of reading the past, and makes the statement:
an INSERT OVERWRITE of the whole table from its own past. So it takes an overwrite's lock, is one transaction, and reads
the past under that lock; the read checks the point again.
"""

from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.table import AcidTable
from metastore.acid_tables.time_travel import as_of_write_id, bases
from metastore.client.lock_plan import statement_locks, target_of
from metastore.client.partitions import partition_places
from metastore.client.scans import snapshot_directories
from metastore.client.txn_manager import Transaction
from metastore.errors import InvalidInputError, InvalidOperationError
from metastore.ids import TableName
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import (
    INSTANT,
    NUMBER,
    TABLE,
    TEXT,
    Parameter,
    Procedure,
    Rows,
    existing_table,
)
from metastore.planner.read_transactions import reading
from metastore.planner.tables import acid_table

TO_WRITE_ID, TO_TIMESTAMP = "to_write_id", "to_timestamp"


class RestorePoints(NamedTuple):
    """The write ids of a table: the one to restore, and the present one."""

    restored: int
    present: int


def require_restorable(call: PlannerCall, name: TableName, arguments: Body) -> RestorePoints:
    """Return the points of a restore. Raises: InvalidInputError, InvalidOperationError: the point is gone."""
    _require_point(arguments)
    table = acid_table(call.client, name)
    table.require(TableKind.FULL_ACID, action="Restoring")
    with reading(call, "restore") as txn:
        txn.lock(statement_locks([target_of(table)]))
        text = f"{name.db}.{name.table}"
        present = txn.valid_write_ids([text], no_others=True)[text]
        wanted = _wanted(txn, name, present, arguments)
        look = _look(call, table, txn)
        try:
            look(wanted)
        except NotEnoughHistoryError as error:
            raise InvalidOperationError(
                f"{name} cannot be restored to {_point_text(arguments)}: files of that point are gone. {error}. "
                f"The oldest point that is still there is write id {_oldest(call, table, present, look)}."
            ) from error
        return RestorePoints(wanted.high_watermark, present.high_watermark)


def statement(call: PlannerCall, name: TableName, arguments: Body) -> str:
    """Return the SQL for Spark. ``partitionOverwriteMode``: partitions that were empty then become empty."""
    _require_point(arguments)
    table = ".".join(f"`{part}`" for part in (call.body.text("catalog", "spark_catalog"), name.db, name.table))
    if arguments.has(TO_WRITE_ID):
        point = f"VERSION AS OF {arguments.number(TO_WRITE_ID)}"
    else:
        point = f"TIMESTAMP AS OF timestamp_millis({arguments.number(TO_TIMESTAMP)})"
    return f"INSERT OVERWRITE TABLE {table} WITH ('partitionOverwriteMode' = 'static') SELECT * FROM {table} {point}"


def _require_point(arguments: Body) -> None:
    if arguments.has(TO_WRITE_ID) == arguments.has(TO_TIMESTAMP):
        raise InvalidInputError(f"restore needs {TO_WRITE_ID} or {TO_TIMESTAMP}, and not both.")


def _wanted(txn: Transaction, name: TableName, present: ValidWriteIdList, arguments: Body) -> ValidWriteIdList:
    if arguments.has(TO_WRITE_ID):
        return as_of_write_id(present, arguments.number(TO_WRITE_ID))
    return txn.valid_write_ids_at(name, _instant(arguments))


def _look(call: PlannerCall, table: AcidTable, txn: Transaction) -> Callable[[ValidWriteIdList], object]:
    """Return a function that raises NotEnoughHistoryError for a point that is gone."""
    places = partition_places(call.client, table)
    txns = txn.valid_txns()
    return lambda write_ids: snapshot_directories(call.client, call.files, table, places, write_ids, txns, is_past=True)


def _oldest(
    call: PlannerCall, table: AcidTable, present: ValidWriteIdList, look: Callable[[ValidWriteIdList], object]
) -> int:
    """Return the lowest write id that a reader can still see.

    Cleaning removes the oldest points first. So if one point is readable, all later ones are.
    """

    def is_there(write_id: int) -> bool:
        try:
            look(as_of_write_id(present, write_id))
        except NotEnoughHistoryError:
            return False
        return True

    base_ids = {
        base.write_id for place in partition_places(call.client, table) for base in bases(call.files, place.location)
    }
    candidates = sorted(write_id for write_id in base_ids if write_id < present.high_watermark)
    place = bisect_left(candidates, True, key=is_there)  # noqa: FBT003 - False stands before True
    return candidates[place] if place < len(candidates) else present.high_watermark


def _instant(arguments: Body) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=arguments.number(TO_TIMESTAMP))


def _point_text(arguments: Body) -> str:
    if arguments.has(TO_WRITE_ID):
        return f"write id {arguments.number(TO_WRITE_ID)}"
    return f"{_instant(arguments):%Y-%m-%d %H:%M:%S} UTC"


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    name = existing_table(call, arguments)
    points = require_restorable(call, name, arguments)
    return [{"table": str(name), "restored_write_id": points.restored, "previous_write_id": points.present}]


PROCEDURE = Procedure(
    "Make a table what it was at a point of its past, by an overwrite: what came later stays in its history",
    (
        TABLE,
        Parameter(TO_WRITE_ID, NUMBER, "up to this write id, as history lists them"),
        Parameter(TO_TIMESTAMP, INSTANT, "or: what had been committed by then"),
    ),
    {"table": TEXT, "restored_write_id": NUMBER, "previous_write_id": NUMBER},
    _rows,
    lambda call, arguments: statement(call, existing_table(call, arguments), arguments),
)
