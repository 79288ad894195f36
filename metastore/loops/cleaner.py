"""The Cleaner: it removes files that no reader can still need, and files of aborted transactions.

Rule: files first, then a look whether they are gone, then the database. Every step may be repeated: a crash between
them leaves a request that is ready for cleaning, and the next round finishes it. Files are removed by the table's
identity: before each deletion the name must still belong to the table that was looked up (ADR 0037). Files that may
still be published, by the job of an aborted compaction or by a writer that another process has aborted, are remembered
until a base covers them (ADR 0038). A missing directory is an error, not "nothing to remove": a file system that is not
mounted must not make us forget aborts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Event
from typing import NamedTuple, TypeVar

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, Listed, NotEnoughHistoryError, acid_state
from metastore.catalog.model import TableType
from metastore.catalog.rules.change_management import is_needed
from metastore.catalog.rules.locations import qualified
from metastore.catalog.service import change_management
from metastore.catalog.service.moves import DirectoryMoves
from metastore.compaction.cleaning.rules import (
    GONE,
    LOOK_AGAIN,
    WHOLE_TABLE,
    CleaningVerdict,
    Covered,
    Gate,
    acid_directories,
    cleaning_write_ids,
    dead_staging,
    is_own,
    mixed_write_ids,
    shared,
    superseded_outputs,
    top_directories,
)
from metastore.compaction.cleaning.service import AbortCleaning, CleanerService, Cleaning
from metastore.compaction.queue.rules.requests import Compaction, CompactionState, Entity
from metastore.compaction.queue.store.entities import Described
from metastore.db import failpoints
from metastore.errors import InvalidOperationError, MetastoreError, UnavailableError
from metastore.files import FileEntry, Files
from metastore.locks.rules import LockObject, LockRequest, LockState, LockType, Operation, WantedLock
from metastore.locks.service import LockService
from metastore.loops.parallel import in_parallel
from metastore.roots import OutsideError
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
Item = TypeVar("Item")


class CleanOutcome(StrEnum):
    """The outcomes of a request, or of the clean-up of an entity's aborted writes."""

    CLEANED = "cleaned"
    WAITING = "waiting"
    REFUSED = "refused"
    FAILED = "failed"
    GONE = "nothing to clean any more"


class Cleaned(NamedTuple):
    """One line of the report. ``id`` None: a clean-up of aborted writes. ``forgotten``: rows about the writes."""

    id: int | None
    entity: Entity
    outcome: CleanOutcome
    reason: str = ""
    removed: tuple[str, ...] = ()
    forgotten: int = 0
    step: str = "cleaning"

    @property
    def is_failure(self) -> bool:
        """True if the line counts as failed in the metrics."""
        return self.outcome is CleanOutcome.FAILED


class _GoneError(Exception):
    """Error: the name belongs to another table by now, or to none."""


class _LeftError(Exception):
    """Error: a removed file is still there."""


@dataclass(frozen=True)
class Cleaner:
    """One round over every request that is ready for cleaning, then over leftovers of aborted transactions."""

    compactions: CleanerService
    files: Files
    stopping: Event = field(default_factory=Event)
    locks: LockService | None = None
    moves: DirectoryMoves | None = None
    """The moves, which keep other objects out of a place; None if another metastore has the catalog."""

    def tick(self) -> list[Cleaned]:
        """Clean what may be cleaned; report the waits of the rest."""
        report = self._each(lambda of: self._decided(*of), self.compactions.waiting(), lambda of: of[0].entity)
        if self.compactions.settings.clean_aborts_using_cleaner and not self.stopping.is_set():
            report += self._each(lambda of: self._aborted(*of), self.compactions.aborted_entities(), lambda of: of[0])
        for cleaned in report:
            fields = {
                "compaction_id": cleaned.id,
                "entity": str(cleaned.entity),
                "outcome": cleaned.outcome.value,
                "reason": cleaned.reason,
                "removed": len(cleaned.removed),
                "forgotten": cleaned.forgotten,
            }
            if cleaned.outcome is CleanOutcome.WAITING:
                _log.debug("compaction_cleaning", **fields)
            else:
                _log.info("compaction_cleaning", **fields)
        return report

    def _each(
        self, work: Callable[[Item], Cleaned], items: Sequence[Item], entity_of: Callable[[Item], Entity]
    ) -> list[Cleaned]:
        """Run ``work`` on whole tables, then on partitions, so that no two threads work in the same directory tree.

        No two items share a directory.
        """
        parts: tuple[list[Item], list[Item]] = ([], [])
        for item in items:
            parts[bool(entity_of(item).partition)].append(item)
        return [
            cleaned for part in parts for cleaned in in_parallel(work, part, self.compactions.threads, self.stopping)
        ]

    def _decided(self, request: Compaction, gate: Gate) -> Cleaned:
        if gate.verdict is CleaningVerdict.WAIT:
            return Cleaned(request.id, request.entity, CleanOutcome.WAITING, gate.reason)
        try:
            if gate.verdict is CleaningVerdict.FAIL:
                self.compactions.end(request, CompactionState.FAILED, gate.reason)
                return Cleaned(request.id, request.entity, CleanOutcome.FAILED, gate.reason)
            return self._one(request)
        except UnavailableError as error:
            return self._unavailable(request, str(error))
        except _GoneError as error:
            return Cleaned(request.id, request.entity, CleanOutcome.GONE, str(error))
        except OutsideError as error:  # A repetition would change nothing.
            self.compactions.end(request, CompactionState.REFUSED, str(error))
            return Cleaned(request.id, request.entity, CleanOutcome.REFUSED, str(error))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one table, the others get their turn
            message = f"{type(error).__name__}: {error}"
            final = self.compactions.fail_attempt(request, message)
            _log.warning("compaction_cleaning_failed", compaction_id=request.id, error=message, given_up=final)
            return Cleaned(request.id, request.entity, CleanOutcome.FAILED, message)

    def _one(self, request: Compaction) -> Cleaned:
        cleaning = self.compactions.start(request)
        if cleaning is None:
            return Cleaned(request.id, request.entity, CleanOutcome.GONE, "somebody else took it")
        if isinstance(cleaning, Gate):
            outcome = CleanOutcome.REFUSED if cleaning.verdict is CleaningVerdict.REFUSE else CleanOutcome.WAITING
            return Cleaned(request.id, request.entity, outcome, cleaning.reason)
        return self._clean(cleaning)

    def _unavailable(self, request: Compaction, reason: str) -> Cleaned:
        """Return the report for a table that is unavailable at this moment: no attempt is counted.

        Raises: UnavailableError if nothing is available.
        """
        self.compactions.require_available()
        if reason != request.error_message:
            _log.warning("compaction_cleaning_put_off", compaction_id=request.id, reason=reason)
        with suppress(UnavailableError):  # The request itself may be unavailable.
            self.compactions.leave(request, reason, LOOK_AGAIN)
        return Cleaned(request.id, request.entity, CleanOutcome.FAILED, reason)

    def _clean(self, cleaning: Cleaning) -> Cleaned:
        request, table = cleaning.request, cleaning.table
        abandoned = request.abandoned_place
        if abandoned is not None and abandoned.rstrip("/") != cleaning.location:
            return self._clean_abandoned(cleaning, abandoned)
        if table is None or not table.partition_exists:
            self.compactions.end(request, CompactionState.SUCCEEDED, None)
            return Cleaned(request.id, request.entity, CleanOutcome.GONE, "the table or partition was dropped")
        if table.lacks_partition:
            removed, left = self._remove_aborted(table, cleaning.write_ids, cleaning.txns)
            keep, covered = self._mixed(table, cleaning.write_ids), self._covered(table, cleaning)
        else:
            removed, left, keep, covered = self._remove_obsolete(table, cleaning)
        if left:
            reason = f"still there: {', '.join(left)}"
            self.compactions.leave(request, reason)
            return Cleaned(request.id, request.entity, CleanOutcome.WAITING, reason, tuple(removed))
        failpoints.hit("cleaner.before_record")
        forgotten = self.compactions.clean(cleaning, keep, covered)
        if forgotten is None:
            return Cleaned(request.id, request.entity, CleanOutcome.GONE, "somebody else finished it", tuple(removed))
        return Cleaned(request.id, request.entity, CleanOutcome.CLEANED, removed=tuple(removed), forgotten=forgotten)

    def _clean_abandoned(self, cleaning: Cleaning, location: str) -> Cleaned:
        """Remove everything that a soft drop or a failed CREATE TABLE AS left, unless another object has the place.

        A writer to a new partition of this name holds a lock that excludes ours; adding a partition or a table needs a
        place that we hold. If the name is elsewhere by now, no writer writes here. Source: COMP-C24.
        """
        request, user = cleaning.request, None
        lives_elsewhere = bool(cleaning.location)
        try:
            with nullcontext() if lives_elsewhere else self._locked_out(request) as blocker:
                if blocker is None:
                    user = self._remove_abandoned(request.entity, location)
        except UnavailableError as error:  # Another object has the place, or the database fails.
            blocker = str(error)
        if blocker is not None:
            self.compactions.leave(request, blocker)
            return Cleaned(request.id, request.entity, CleanOutcome.WAITING, blocker)
        if user is not None:
            reason = f"{location} is used by {user}: nothing was removed"
            self.compactions.end(request, CompactionState.REFUSED, reason)
            return Cleaned(request.id, request.entity, CleanOutcome.REFUSED, reason)
        forgotten = 0
        if lives_elsewhere:  # Records about the name's writes belong to the other place.
            self.compactions.end(request, CompactionState.SUCCEEDED, None)
        else:
            forgotten = self.compactions.clean(cleaning, (), GONE) or 0
        self._tidy_database(request.entity, location)
        return Cleaned(request.id, request.entity, CleanOutcome.CLEANED, removed=(location,), forgotten=forgotten)

    def _remove_abandoned(self, entity: Entity, location: str) -> str | None:
        """Remove a place that has no object; return its owner, if it has one.

        Raises: UnavailableError if it is taken.
        """
        with self.moves.held(location.rstrip("/")) if self.moves is not None else nullcontext() as place:
            alike = dict.fromkeys([location, qualified(location, "file:")])  # Clients may write it with file:.
            user = next(filter(None, (self.compactions.user_of_location(each, entity) for each in alike)), None)
            if user is None:
                failpoints.hit("cleaner.before_drop")
                if place is not None:
                    place.require()
                kept = is_needed(self.compactions.database_parameters(entity.table), TableType.MANAGED)
                change_management.remove(self.files, location, kept=kept)
            return user

    @contextmanager
    def _locked_out(self, request: Compaction) -> Iterator[str | None]:
        """Hold the exclusive lock on a dropped object; yield the reason if another lock excludes it."""
        if self.locks is None:
            yield None
            return
        entity = request.entity
        wanted = WantedLock(LockType.EXCLUSIVE, LockObject(*entity.table, entity.partition), Operation.NO_TXN)
        [answer] = self.locks.lock([LockRequest((wanted,), user="cleaner", agent_info=f"cleaning {request.id}")])
        if isinstance(answer, MetastoreError):
            raise answer
        try:
            is_ours = answer.state is LockState.ACQUIRED
            yield None if is_ours else f"waiting for locks on {entity}; see SHOW LOCKS"
        finally:
            self.locks.unlock([answer.lock_id])

    def _tidy_database(self, entity: Entity, location: str) -> None:
        """Remove a dropped database's directory after its last table, if it is empty."""
        above = location.rstrip("/").rpartition("/")[0]
        if entity.partition or self.compactions.is_database_of(entity.table, above):
            return
        with suppress(OSError, MetastoreError):  # The directory is not empty or not ours, so it stays.
            self.files.delete(above, recursive=False)

    def _remove_obsolete(self, table: Described, cleaning: Cleaning) -> tuple[list[str], list[str], set[int], Covered]:
        """Remove obsolete directories; return (removed, still there, write ids to remember, covered)."""
        location = table.location.rstrip("/")
        mark = cleaning_write_ids(cleaning.write_ids, cleaning.request.highest_write_id)

        def doomed(listing: Iterable[FileEntry]) -> list[str]:
            entries = list(listing)
            covered = self._state(location, entries, mark, cleaning.txns)
            now = self._state(location, entries, cleaning.write_ids, cleaning.txns)
            paths = dict.fromkeys([*covered.obsolete, *covered.aborted, *now.aborted])
            return self._own(table, location, list(paths))

        listing = self._listing(location)
        self._remove_leftovers(table, cleaning.txns, cleaning.request.txn_id)  # No request asks for these files.
        removed = self._delete(table, location, doomed(listing))
        after = self.files.listing(location)
        keep = mixed_write_ids(top_directories(after), cleaning.write_ids)
        return removed, doomed(after), keep, self._covered(table, cleaning)

    def _aborted(self, entity: Entity, retry: Compaction | None) -> Cleaned:
        try:
            return self._clean_aborted(self.compactions.start_aborted(entity))
        except UnavailableError as error:
            self.compactions.require_available()
            message = str(error)
        except _GoneError as error:
            return Cleaned(None, entity, CleanOutcome.GONE, str(error))
        except _LeftError as error:
            message = str(error)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one table, the others get their turn
            message = f"{type(error).__name__}: {error}"
        self.compactions.fail_abort_cleaning(entity, retry, message)
        _log.warning("compaction_abort_cleaning_failed", entity=str(entity), error=message)
        return Cleaned(None, entity, CleanOutcome.FAILED, message)

    def _clean_aborted(self, cleaning: AbortCleaning) -> Cleaned:
        entity, table, kept = cleaning.entity, cleaning.table, cleaning.gate
        if kept.verdict is CleaningVerdict.REFUSE:
            return Cleaned(None, entity, CleanOutcome.REFUSED, kept.reason)
        if table is None or not table.partition_exists:
            forgotten = self.compactions.forget_aborted(cleaning, (), GONE)
            return Cleaned(None, entity, CleanOutcome.GONE, "the table or partition was dropped", (), forgotten)
        if kept.verdict is CleaningVerdict.WAIT:
            raise InvalidOperationError(kept.reason)
        removed, left = self._remove_aborted(table, cleaning.write_ids, cleaning.txns)
        if left:
            raise _LeftError(f"still there: {', '.join(left)}")
        keep, covered = self._mixed(table, cleaning.write_ids), self._covered(table, cleaning)
        forgotten = self.compactions.forget_aborted(cleaning, keep, covered)
        return Cleaned(None, entity, CleanOutcome.CLEANED, removed=tuple(removed), forgotten=forgotten)

    def _remove_aborted(
        self, table: Described, write_ids: ValidWriteIdList, txns: ValidTxnList
    ) -> tuple[list[str], list[str]]:
        """Remove files of aborted transactions only, never obsolete directories (HIVE-25502).

        Return (removed, still there).
        """
        removed: list[str] = []
        left = self._remove_leftovers(table, txns)
        for location in self._locations(table):
            aborted = self._aborted_below(location, self._listing(location), write_ids, txns)
            removed += self._delete(table, location, self._own(table, location, aborted))
            after = self._aborted_below(location, self.files.listing(location), write_ids, txns)
            left += self._own(table, location, after)
        return removed, left

    def _own(self, table: Described, location: str, paths: list[str]) -> list[str]:
        """Return the paths except those of other objects inside a directory of the table, whatever their names are.

        Paths in a partition of the table belong to it again. Raises: InvalidOperationError if a partition of it and
        another transactional table have one directory, because the owner of a file there is unknown.
        """
        others = {other.rstrip("/") for other in (self.compactions.places_of_others(table, location) if paths else [])}
        if not others:
            return paths
        homes = {location, *self._partition_places(table)}
        for home in sorted(homes & others):
            if sharer := self.compactions.shared_with(replace(table, location=home)):
                raise InvalidOperationError(shared(home, sharer))
        return [path for path in paths if is_own(f"{location}/{path}", homes, others)]

    def _remove_leftovers(self, table: Described, txns: ValidTxnList, proven_by: int | None = None) -> list[str]:
        """Remove leftovers of dead writers and jobs in hidden directories, which belong to no state.

        Return what remains.

        Writers prepare files for a partition in the table's directory. ``proven_by``: the transaction of a compaction
        that was proven, which makes unproven outputs of earlier compactions useless.
        """
        left = []
        for location in dict.fromkeys([table.location.rstrip("/"), table.root.rstrip("/")]):
            try:
                names = self.files.children(location) if location else []
                unneeded = [*dead_staging(names, txns), *superseded_outputs(names, proven_by)]
                removed = self._delete(table, location, unneeded)
            except OSError as error:
                left.append(f"{location}: {error}")
                _log.warning("compaction_leftovers_kept", entity=str(table.entity), location=location, error=str(error))
            else:
                if removed:
                    _log.info(
                        "compaction_leftovers_removed", entity=str(table.entity), location=location, removed=removed
                    )
        return left

    def _aborted_below(
        self, location: str, listing: Iterable[FileEntry], write_ids: ValidWriteIdList, txns: ValidTxnList
    ) -> list[str]:
        left = []
        for prefix, entries in acid_directories(listing).items():
            below = f"{prefix}/" if prefix else ""
            state = self._state(f"{location}/{below}".rstrip("/"), entries, write_ids, txns)
            left += [f"{below}{path}" for path in state.aborted]
        return left

    def _mixed(self, table: Described, write_ids: ValidWriteIdList) -> set[int]:
        return {
            write_id
            for location in self._locations(table)
            for prefix, entries in acid_directories(self.files.listing(location)).items()
            for write_id in mixed_write_ids(top_directories(entries), write_ids)
        }

    def _covered(self, table: Described, cleaning: Cleaning | AbortCleaning) -> Covered:
        """Return the base that every new reader uses; files that are added later do not change it."""
        if table.lacks_partition:
            return WHOLE_TABLE
        location = table.location.rstrip("/")
        base = self._state(location, self.files.listing(location), cleaning.write_ids, cleaning.txns).base
        return Covered(base.name, base.name) if base else Covered()

    def _locations(self, table: Described) -> list[str]:
        """Return the directory trees of an entity; of a partitioned table also partitions that lie elsewhere."""
        root = table.location.rstrip("/")
        elsewhere = [place for place in self._partition_places(table) if not place.startswith(f"{root}/")]
        return [root, *dict.fromkeys(elsewhere)]

    def _partition_places(self, table: Described) -> list[str]:
        """Return the locations of partitions for an entity that is a whole partitioned table."""
        if not table.lacks_partition:
            return []
        return [location.rstrip("/") for _, location in self.compactions.partitions(table.entity)]

    def _listing(self, location: str) -> list[FileEntry]:
        listing = self.files.listing(location)
        if not listing and not self.files.exists(location) and not location.startswith(("s3", "gs:", "abfs", "wasb")):
            raise FileNotFoundError(f"{location} does not exist: is its file system there?")
        return listing

    def _delete(self, table: Described, location: str, paths: Iterable[str]) -> list[str]:
        """Remove as many paths as possible, and raise the first failure at the end.

        Raises: _GoneError, before anything of another table is touched.
        """
        removed, failure = [], None
        kept = is_needed(table.database_parameters, TableType.MANAGED)
        for path in paths:
            if not self.compactions.is_still(table):
                raise _GoneError(f"{table.entity} was dropped, renamed or moved meanwhile")
            try:
                change_management.remove(self.files, f"{location}/{path}", kept=kept)
                removed.append(path)
                failpoints.hit("cleaner.after_delete")
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return removed

    def _state(
        self, location: str, listing: Iterable[Listed], write_ids: ValidWriteIdList, txns: ValidTxnList
    ) -> AcidState:
        try:
            return acid_state(listing, write_ids, txns, lambda path: self.files.read(f"{location}/{path}"))
        except NotEnoughHistoryError:  # These lists may use no base, so nothing is covered.
            return AcidState()
