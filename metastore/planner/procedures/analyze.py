"""The procedure CALL analyze: it stores a table's numbers of rows and bytes in its properties, for optimizers.

Rule: the numbers are estimates, and marked as unfit to answer a query: ``COLUMN_STATS_ACCURATE`` is removed. Rows are
the insert events of the footers, less the delete events. A shared lock prevents alterations of the table meanwhile.
"""

from typing import NamedTuple

from metastore.acid_tables.delete_files import DeleteFiles
from metastore.acid_tables.footers import orc_tails
from metastore.acid_tables.table import AcidTable
from metastore.catalog.rules.statistics import ACCURATE
from metastore.client.lock_plan import statement_locks, target_of
from metastore.client.partitions import partition_places
from metastore.client.scans import snapshot_directories
from metastore.client.txn_manager import Transaction
from metastore.planner import column_statistics
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.procedures.declaration import (
    NUMBER,
    TABLE,
    TEXT,
    TEXTS,
    Parameter,
    Procedure,
    Rows,
    existing_table,
)
from metastore.planner.read_transactions import reading
from metastore.planner.scans import TableSnapshot, files_of
from metastore.planner.tables import acid_table

_ROWS, _BYTES = "numRows", "totalSize"


class TableSize(NamedTuple):
    """The size of a table. ``rows``: None if the files' format does not tell."""

    rows: int | None
    bytes: int


def analyze(call: PlannerCall, table: AcidTable) -> TableSize:
    """Read all files of the table, and store its size. Raises: OSError, LockNotAcquiredError."""
    with reading(call, "analyze") as txn:
        txn.lock(statement_locks([target_of(table)]))
        size = _size(call, table, txn)
        thrift_table = call.client.get_table(table.name.db, table.name.table)
        properties = {key: value for key, value in (thrift_table.parameters or {}).items() if key != ACCURATE}
        properties[_BYTES] = str(size.bytes)
        if size.rows is not None:
            properties[_ROWS] = str(size.rows)
        thrift_table.parameters = properties
        call.client.alter_table(table.name.db, table.name.table, thrift_table)
        return size


def _size(call: PlannerCall, table: AcidTable, txn: Transaction) -> TableSize:
    text = f"{table.name.db}.{table.name.table}"
    write_ids = txn.valid_write_ids([text], no_others=True)[text]
    places = partition_places(call.client, table)
    directories = snapshot_directories(call.client, call.files, table, places, write_ids, txn.valid_txns())
    answer = files_of(TableSnapshot(table, write_ids, directories))
    deletes = [file for directory in directories for file in directory.sources.deletes]
    events = DeleteFiles.of(call.files, deletes).events(deletes)
    if events is None or any(directory["format"] != "orc" for directory in answer["directories"]):
        return TableSize(None, answer["bytes"])
    tails = orc_tails(call.files, [file["path"] for file in (*answer["events"], *answer["plain"])])
    return TableSize(max(0, sum(tail.rows for tail in tails) - events), answer["bytes"])


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    name = existing_table(call, arguments)
    size = analyze(call, acid_table(call.client, name))
    return [{"table": str(name), "rows": size.rows, "bytes": size.bytes}]


def _columns_query(call: PlannerCall, arguments: Body) -> Answer | None:
    names = arguments.texts("columns")
    if not names:
        return None
    return column_statistics.query(call, acid_table(call.client, existing_table(call, arguments)), names)


PROCEDURE = Procedure(
    "Count rows and bytes by the footers of a table's files, and note them for optimizers; columns too",
    (
        TABLE,
        Parameter("columns", TEXTS, f"columns to be read for statistics, array('{column_statistics.ALL}') for all"),
    ),
    {"table": TEXT, "rows": NUMBER, "bytes": NUMBER},
    _rows,
    query=_columns_query,
)
