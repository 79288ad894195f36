"""The procedure CALL repair: it matches a table's partitions and directories, as Hive's MSCK REPAIR does.

Rule: no other statement reads or writes meanwhile, so a directory without a partition is none that a writer is about to
register. It becomes one if a present snapshot sees rows in it. A directory that would be read wrongly, now or later, is
left out with the reason: another spelling of an existing partition, and write ids that the table has not allocated,
which are of another table or metastore. Files are neither moved nor removed, and a partition is dropped only when its
directory is gone.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from metastore.acid.names import BaseName, DeltaName, is_hidden, parse_directory
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.types import parse_type
from metastore.acid_tables.partitions import PartitionPlace, partition_name
from metastore.acid_tables.table import AcidTable
from metastore.client.partitions import Typed, new_partition, partition_places, typed_values
from metastore.client.scans import snapshot_directories
from metastore.errors import InvalidInputError, InvalidOperationError, MetastoreError
from metastore.files import FileEntry
from metastore.partition_names import DEFAULT_PARTITION, values_for
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.ddl_locks import alone
from metastore.planner.partition_spelling import as_spark_writes
from metastore.planner.procedures.declaration import FLAG, TABLE, TEXT, Parameter, Procedure, Rows, existing_table
from metastore.planner.read_transactions import reading
from metastore.planner.tables import acid_table

_SHOWN = 3


class RepairMode(Enum):
    """The directions of a repair."""

    ADD = "directories become partitions"
    DROP = "partitions without a directory go"
    SYNC = "both"


class Repaired(NamedTuple):
    """The outcome of a partition. ``reason``: why it was left out."""

    partition: str
    action: str
    location: str
    reason: str | None = None


def repair(call: PlannerCall, table: AcidTable, mode: RepairMode, *, is_dry: bool) -> list[Repaired]:
    """Add and drop partitions, or with ``is_dry`` only return which. Raises: LockNotAcquiredError, OSError.

    InvalidOperationError: the table has no partitions.
    """
    if not table.partition_keys:
        raise InvalidOperationError(f"{table.name} has no partitions: there is nothing to repair.")
    with alone(call, table):
        places = partition_places(call.client, table)
        listing = call.files.listing(table.location)
        answers: list[Repaired] = []
        if mode is not RepairMode.DROP:
            answers += _judged(call, table, _missing(table, places, listing), places)
        if mode is not RepairMode.ADD:
            there = {f"{table.location}/{folder}" for folder in _folders(listing)}
            gone = [place for place in places if place.location not in there and not call.files.exists(place.location)]
            answers += [Repaired(place.name, "dropped", place.location) for place in gone]
        if not is_dry:
            _carry_out(call, table, answers)
    return answers


def _folders(listing: Iterable[FileEntry]) -> set[str]:
    """Return the paths of all directories, also of those that a store shows only by their files."""
    folders: set[str] = set()
    for entry in listing:
        parts = entry.path.split("/")
        last = len(parts) + entry.is_dir
        folders.update("/".join(parts[:depth]) for depth in range(1, last))
    return folders


def _missing(
    table: AcidTable, places: Sequence[PartitionPlace], listing: Sequence[FileEntry]
) -> Iterator[PartitionPlace]:
    """Yield directories that are named like partitions and belong to none, as the partitions to add."""
    taken = {place.location for place in places}
    for folder in sorted(_folders(listing)):
        segments = folder.split("/")
        values = values_for(table.partition_names, folder)
        if values is None or len(segments) != len(table.partition_keys) or any(map(is_hidden, segments)):
            continue
        location = f"{table.location}/{folder}"
        if location not in taken:
            known = tuple(None if value == DEFAULT_PARTITION else value for value in values)
            yield PartitionPlace(partition_name(table, known), known, location)


def _judged(
    call: PlannerCall, table: AcidTable, missing: Iterable[PartitionPlace], places: Iterable[PartitionPlace]
) -> Iterator[Repaired]:
    types = [parse_type(key.type) for key in table.partition_keys]

    def typed(place: PartitionPlace) -> Typed:
        return typed_values(table, as_spark_writes(place.values, types))

    known = {typed(place): place.name for place in places}
    with reading(call, "repair") as txn:
        full_name = f"{table.name.db}.{table.name.table}"
        write_ids, txns = txn.valid_write_ids([full_name], no_others=True)[full_name], txn.valid_txns()
        for place in missing:
            same = known.get(typed(place))
            reason = (
                _reason(call, table, place, write_ids, txns)
                if same is None
                else f"the partition {same} has these values"
            )
            if reason is None:
                known[typed(place)] = place.name
            yield Repaired(place.name, "added" if reason is None else "left out", place.location, reason)


def _reason(
    call: PlannerCall, table: AcidTable, place: PartitionPlace, write_ids: ValidWriteIdList, txns: ValidTxnList
) -> str | None:
    """Return why a directory must not become a partition; None if it may."""
    foreign = [name for name in call.files.children(place.location) if _last_write_id(name) > write_ids.high_watermark]
    if foreign:
        return (
            f"{', '.join(foreign[:_SHOWN])} has a write id that {table.name} has not given out (its last is "
            f"{write_ids.high_watermark}): it is of another table"
        )
    try:
        [directory] = snapshot_directories(call.client, call.files, table, [place], write_ids, txns, is_part=True)
    except MetastoreError as error:
        return str(error)
    sources = directory.sources
    has_rows = bool(sources.events or sources.cut or sources.without_events)
    return None if has_rows else "no transaction has committed rows there"


def _last_write_id(name: str) -> int:
    match parse_directory(name):
        case BaseName(write_id=last) | DeltaName(max_write_id=last):
            return last
        case _:
            return 0


def _carry_out(call: PlannerCall, table: AcidTable, answers: Iterable[Repaired]) -> None:
    types = call.client.types
    added = [answer for answer in answers if answer.action == "added"]
    if added:
        sd = call.client.get_table(table.name.db, table.name.table).sd
        parts = [
            new_partition(types, table, sd, values_for(table.partition_names, answer.partition) or (), answer.location)
            for answer in added
        ]
        call.client.add_partitions_req(
            types.AddPartitionsRequest(
                dbName=table.name.db, tblName=table.name.table, parts=parts, ifNotExists=True, needResult=False
            )
        )
    dropped = [answer.partition for answer in answers if answer.action == "dropped"]
    if dropped:
        call.client.drop_partitions_req(
            types.DropPartitionsRequest(
                dbName=table.name.db,
                tblName=table.name.table,
                parts=types.RequestPartsSpec(names=dropped),
                deleteData=False,
                ifExists=True,
                needResult=False,
            )
        )


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    name = existing_table(call, arguments)
    mode = arguments.text("mode", RepairMode.ADD.name).upper()
    if mode not in RepairMode.__members__:
        raise InvalidInputError(f"mode must be one of {', '.join(RepairMode.__members__)}, not {mode!r}.")
    table = acid_table(call.client, name)
    done = repair(call, table, RepairMode[mode], is_dry=arguments.flag("dry_run"))
    return [repaired._asdict() for repaired in done]


PROCEDURE = Procedure(
    "Bring a table's partitions and its directories together, as MSCK REPAIR TABLE in Hive",
    (
        TABLE,
        Parameter(
            "mode", TEXT, "ADD: directories become partitions; DROP: partitions without any go; SYNC: both", "'ADD'"
        ),
        Parameter("dry_run", FLAG, "whether only to say what would be done", "false"),
    ),
    {"partition": TEXT, "action": TEXT, "location": TEXT, "reason": TEXT},
    _rows,
)
