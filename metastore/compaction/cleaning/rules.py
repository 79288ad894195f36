"""Rules of the Cleaner: the files that it may remove, and when.

Rule: files made obsolete by a compaction that committed at point N go only when every open transaction has an id above
N (strictly: transaction N itself may have taken its snapshot before the commit). Directories of aborted writes may go
at any time, since no snapshot reads them; their history may be forgotten only once the files are verified to be gone.
Source: Hive's CompactionCleaner, TxnUtils.createValidTxnListForCleaner; HIVE-24291, HIVE-24444, HIVE-25502.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from metastore.acid.names import BaseName, DeltaName, MalformedNameError, parse_directory, staging_owner, unproven_owner
from metastore.acid.retention import HISTORY_RETENTION, history_retention
from metastore.acid.snapshots import CompactorWriteIdList, RangeState, ValidTxnList, ValidWriteIdList
from metastore.acid.state import Listed, ListedFile
from metastore.compaction.queue.rules.requests import NO_CLEANUP, Compaction, CompactionType, Entity, is_switched_on
from metastore.errors import MetaError
from metastore.txns.core.rules import LARGEST_ID


class DeclaredReading(StrEnum):
    """The declaration of an open transaction about reading the compacted table."""

    ANYTHING = "anything"
    """The transaction has declared nothing, so it may read every table."""
    THIS = "this"
    OTHERS = "others"
    """The transaction has declared other tables. It may still declare this one."""
    NOT_THIS = "not this"
    """The transaction has not declared this table, and cannot any more: the Cleaner did not wait for it."""

    @classmethod
    def of(cls, this: int | None, of_any: int | None) -> "DeclaredReading":
        """Return the declaration that a transaction's marks stand for.

        ``this``: the mark for this table; ``of_any``: the highest mark of any table; None where there is no mark.
        """
        if this is not None:
            return cls.NOT_THIS if this < 0 else cls.THIS
        return cls.ANYTHING if of_any is None or of_any < 0 else cls.OTHERS


class OpenTxn(NamedTuple):
    """An open transaction, and its declaration about the compacted table."""

    id: int
    user: str
    host: str
    reading: DeclaredReading = DeclaredReading.ANYTHING


_WHY = {
    DeclaredReading.ANYTHING: "has not said what it reads",
    DeclaredReading.THIS: "has said that it reads this table",
}


class CleaningVerdict(StrEnum):
    """The decision on a request that is ready for cleaning, or on the files of aborted transactions."""

    CLEAN = "clean"
    WAIT = "wait"
    NOTE_END = "note its end"
    """The transaction has ended, and the time is not recorded."""
    FAIL = "fail"
    REFUSE = "refuse"


class Gate(NamedTuple):
    """The verdict, its reason, and the time of the next look for a reason of the table."""

    verdict: CleaningVerdict
    reason: str = ""
    not_before: datetime | None = None


LOOK_AGAIN = timedelta(minutes=5)
"""The time after which the Cleaner notices a shorter retention, or that a directory is no longer shared."""


def is_kept(request: Compaction, now: datetime, retention: timedelta) -> bool:
    """Return True while files that a compaction replaced are kept for queries that were planned before it."""
    return request.committed_at is not None and now < request.committed_at + retention


def gate(
    request: Compaction,
    now: datetime,
    retention: timedelta,
    txn_state: str | None,
    open_txns: Sequence[OpenTxn],
    *,
    per_table: bool,
) -> Gate:
    """Decide whether open transactions allow the cleaning of a request now.

    Hive 4 hands over the files of a CREATE TABLE AS, and then aborts its transaction. ``txn_state`` None: it is no
    longer on record. ``open_txns``: the open transactions, at least those with ids up to the request's ``next_txn_id``.
    ``per_table``: a transaction that declares its tables delays the cleaning of those tables only.
    """
    if txn_state == "aborted" and request.abandoned_place is None:
        return Gate(
            CleaningVerdict.FAIL, f"The compaction's transaction {request.txn_id} was aborted: its result is void"
        )
    if txn_state == "open":
        return Gate(CleaningVerdict.WAIT, f"waiting for the commit of the compaction's transaction {request.txn_id}")
    if request.next_txn_id is None:
        return Gate(CleaningVerdict.NOTE_END, "waiting for its point of commit")
    if request.not_before is not None and now < request.not_before:
        return Gate(CleaningVerdict.WAIT, request.error_message or "waiting to be tried again")
    if is_kept(request, now, retention):
        return Gate(
            CleaningVerdict.WAIT, f"old files are kept for {int(retention.total_seconds())} s after the compaction"
        )
    reader = next((txn for txn in open_txns if may_read_old_files(txn, request, per_table=per_table)), None)
    return Gate(CleaningVerdict.CLEAN) if reader is None else Gate(CleaningVerdict.WAIT, _waiting_for(reader))


def gate_of_table(
    parameters: Mapping[str, str],
    of_partition: Mapping[str, str],
    now: datetime,
    *,
    replaced_at: datetime | None = None,
    shares: str | None = None,
) -> Gate:
    """Decide whether a table's files may be removed. An unreadable history property keeps all files.

    ``replaced_at``: the time at which the files were replaced; None: they never were current files of the table.
    ``shares``: the sentence of ``shared``, if another table has the directory.
    """
    if is_switched_on(parameters, NO_CLEANUP) or is_switched_on(of_partition, NO_CLEANUP):
        return Gate(CleaningVerdict.REFUSE, "NO_CLEANUP is set: nothing was removed")
    if replaced_at is not None:
        try:
            until = replaced_at + history_retention(parameters)
        except MetaError as error:
            return Gate(CleaningVerdict.WAIT, f"nothing is removed: {error}", now + LOOK_AGAIN)
        if now < until:
            reason = f"{HISTORY_RETENTION} keeps replaced files until {until:%Y-%m-%d %H:%M} UTC"
            return Gate(CleaningVerdict.WAIT, reason, min(until, now + LOOK_AGAIN))
    return Gate(CleaningVerdict.WAIT, shares, now + LOOK_AGAIN) if shares is not None else Gate(CleaningVerdict.CLEAN)


def shared(location: str, sharer: str) -> str:
    """Return why no file is removed from a directory that two tables have: each has write ids of its own."""
    return (
        f"{location} is also the directory of {sharer}, or in it, whose files nobody can tell from its own: nothing is "
        "removed until one of the two is somewhere else"
    )


def is_own(place: str, homes: Collection[str], others: Collection[str]) -> bool:
    """Return True if a directory or file is the table's own.

    The innermost place around it must be the table's, and no place of another may lie inside.
    ``homes``: the table's directories, one of which contains it; ``others``: those of other objects. One in both is the
    table's.
    """
    if any(other == place or other.startswith(f"{place}/") for other in others):
        return False
    parts = place.split("/")
    around = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next(above in homes for above in around if above in homes or above in others)


class Covered(NamedTuple):
    """The base that every new reader uses; later files that are not above it are never read.

    ``writes``: for ordinary writers; ``results``: for jobs of compactions. 0: nothing is covered.
    """

    writes: BaseName = BaseName(0)
    results: BaseName = BaseName(0)


_ANYTHING = BaseName(LARGEST_ID, LARGEST_ID)
GONE = Covered(_ANYTHING, _ANYTHING)
"""No later publication is ever read: the table or partition is gone."""
WHOLE_TABLE = Covered(results=_ANYTHING)
"""The cover of a partitioned table: no job runs for it, and no base covers partitions that may be unknown."""


class AbortedWrite(NamedTuple):
    """An aborted transaction's record in an entity. ``write_id`` None: it had none.

    ``may_publish``: another process has aborted it, and its owner may not know.
    """

    txn_id: int
    operation: str
    write_id: int | None
    of_compaction: bool
    may_publish: bool


def is_forgettable(write: AbortedWrite, up_to: int | None, keep: Collection[int], covered: Covered) -> bool:
    """Return True if an aborted write may be forgotten once its files are gone, because later files are never read.

    ``up_to``: the highest write id that was cleaned, None: all; ``keep``: write ids that lie among others' rows. Files
    that may still be published are void only while their transaction is known as aborted, unless a base covers it
    (ADR 38): only the base of a compaction wins over an owner's own base of the same write id.
    """
    write_id = write.write_id or 0
    if write_id in keep or (up_to is not None and write_id > up_to):
        return False
    if write.of_compaction:
        return (write_id, write.txn_id) < covered.results
    return not write.may_publish or write.write_id is None or (write_id, 0) < covered.writes


def may_read_old_files(txn: OpenTxn, request: Compaction, *, per_table: bool) -> bool:
    """Return True if cleaning waits for an open transaction: its snapshot may be older than the compaction's commit."""
    is_older = request.next_txn_id is None or txn.id <= request.next_txn_id
    return is_older and may_read(txn, per_table=per_table)


def may_read(txn: OpenTxn, *, per_table: bool) -> bool:
    """Return True if a transaction may read the table now. ``per_table``: its declaration counts."""
    return not per_table or txn.reading in {DeclaredReading.ANYTHING, DeclaredReading.THIS}


def may_come_to_read(txn: OpenTxn, *, per_table: bool) -> bool:
    """Return True if a transaction may read the table now or later: it may still declare more tables."""
    return not per_table or txn.reading is not DeclaredReading.NOT_THIS


def next_in_line(requests: Iterable[Compaction], now: datetime, retention: timedelta) -> list[Compaction]:
    """Return one request for each entity.

    Of those whose waiting time is over, it is the one whose ``highest_write_id`` is the lowest.
    """
    chosen: dict[Entity, Compaction] = {}
    for candidate in sorted(requests, key=lambda request: (request.highest_write_id or 0, request.id)):
        ripe = (candidate.not_before is None or candidate.not_before <= now) and not is_kept(candidate, now, retention)
        if ripe and candidate.type is not CompactionType.ABORT_TXN_CLEANUP:
            chosen.setdefault(candidate.entity, candidate)
    return list(chosen.values())


def cleaning_write_ids(current: ValidWriteIdList, highest_write_id: int | None) -> CompactorWriteIdList:
    """Return the write ids that take part in cleaning a request: up to its mark.

    Directories that reach above the mark are ignored.
    """
    compactor = current.for_compactor()
    mark = min(compactor.high_watermark, highest_write_id or 0)
    aborted = frozenset(write_id for write_id in compactor.aborted if write_id <= mark)
    return CompactorWriteIdList(current.table, mark, None, tuple(sorted(aborted)), aborted)


def is_hidden(request: Compaction, readers: Iterable[OpenTxn]) -> bool:
    """Return True if a transaction that may still read the request's table does not see the compaction's result."""
    return request.next_txn_id is None or any(reader.id <= request.next_txn_id for reader in readers)


def cleaning_txns(current: ValidTxnList, hidden: Collection[int], readers: Iterable[OpenTxn]) -> ValidTxnList:
    """Return the transactions whose ``_v`` directories count as visible when old files are chosen.

    ``hidden``: compactions of the entity that some open reader does not see yet; directories that only they cover must
    stay. ``readers``: transactions that may still read the table; a compaction opened after the oldest of them covers
    nothing either.
    """
    oldest = min((reader.id for reader in readers), default=current.high_watermark + 1)
    return current.without(hidden, min(current.high_watermark, oldest - 1))


def mixed_write_ids(directories: Iterable[str], current: ValidWriteIdList) -> set[int]:
    """Return aborted write ids whose rows lie among committed rows: their history must outlive this cleaning.

    A compacted directory (``_v``) holds no aborted rows, of whichever range.
    """
    kept: set[int] = set()
    for path in directories:
        name = parse_directory(path.rsplit("/", 1)[-1])
        if isinstance(name, DeltaName) and name.visibility_txn_id == 0:
            low, high = name.min_write_id, name.max_write_id
            if current.aborted_range_state(low, high) is RangeState.SOME:
                kept.update(write_id for write_id in current.aborted if low <= write_id <= high)
    return kept


def results_of(directories: Iterable[str], txn_id: int) -> list[str]:
    """Return the directories that a compaction's transaction wrote; recognised by their ``_v`` number."""
    return [path for path in directories if _visibility(path) == txn_id]


def staging_of(names: Iterable[str], txn_id: int) -> list[str]:
    """Return the hidden directories in which a transaction prepares its files."""
    return [name for name in names if staging_owner(name) == txn_id]


def dead_staging(names: Iterable[str], txns: ValidTxnList) -> list[str]:
    """Return hidden directories of transactions that have ended: their files can never be published.

    ``txns``: as of before the names were listed. Age decides nothing: a job may take days, and a transaction without
    heartbeats is ended.
    """
    owners = {name: owner for name in names if (owner := staging_owner(name)) is not None}
    return [name for name, owner in owners.items() if txns.is_valid(owner) or txns.is_aborted(owner)]


def superseded_outputs(names: Iterable[str], txn_id: int | None) -> list[str]:
    """Return directories of refused outputs that compactions with a lower transaction id than ``txn_id`` put aside."""
    return [name for name in names if (owner := unproven_owner(name)) is not None and owner < (txn_id or 0)]


def acid_directories(listing: Iterable[Listed]) -> dict[str, list[ListedFile]]:
    """Return a tree's ACID directories (those with bases or deltas right below) with their content, relative to each.

    They are found by name, not by the catalog: an aborted dynamic insert leaves directories of partitions that were
    never added.
    """
    directories: dict[str, list[ListedFile]] = {}
    for entry in listing:
        parts = entry.path.split("/")
        place = next((at for at, part in enumerate(parts) if _is_acid_name(part)), None)
        if place is not None and (entry.is_dir or place < len(parts) - 1):
            prefix = "/".join(parts[:place])
            directories.setdefault(prefix, []).append(ListedFile("/".join(parts[place:]), entry.size, entry.is_dir))
    return directories


def top_directories(listing: Iterable[Listed]) -> list[str]:
    """Return the directories right below the listed directory, even if a store lists files only."""
    names = dict.fromkeys(entry.path.split("/", 1)[0] for entry in listing if entry.is_dir or "/" in entry.path)
    return list(names)


def _is_acid_name(part: str) -> bool:
    try:
        return parse_directory(part) is not None
    except MalformedNameError:
        return False


def _waiting_for(reader: OpenTxn) -> str:
    why = _WHY.get(reader.reading, "may still read the old files")
    return (
        f"waiting for transaction {reader.id} of {reader.user}@{reader.host}, which was open when the compaction "
        f"committed and {why}"
    )


def _visibility(path: str) -> int:
    try:
        name = parse_directory(path.rsplit("/", 1)[-1])
    except MalformedNameError:
        return 0
    return name.visibility_txn_id if isinstance(name, BaseName | DeltaName) else 0
