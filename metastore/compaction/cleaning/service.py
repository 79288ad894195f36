"""The Cleaner's questions and reports to the database. The loop handles files; this decides and records."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.compaction.cleaning import store
from metastore.compaction.cleaning.rules import (
    AbortedWrite,
    CleaningVerdict,
    Covered,
    Gate,
    OpenTxn,
    cleaning_txns,
    gate,
    gate_of_table,
    is_hidden,
    may_come_to_read,
    next_in_line,
    shared,
)
from metastore.compaction.initiating.rules import Aborts
from metastore.compaction.queue.rules.requests import (
    Compaction,
    CompactionState,
    CompactionType,
    Entity,
    cleaner_retry_delay,
    is_final_failure,
)
from metastore.compaction.queue.store import components, entities
from metastore.compaction.queue.store import requests as queue
from metastore.compaction.queue.store.entities import OWN_CATALOG, Described, EntityCatalog
from metastore.compaction.queue.store.requests import NewRequest
from metastore.config import CompactionSettings
from metastore.db.engine import Database, PgTx
from metastore.ids import TableName


@dataclass(frozen=True)
class Cleaning:
    """A request that may be cleaned now, with all facts but its files, as of one instant.

    ``txns`` tells which ``_v`` directories cover others; ``write_ids`` is the table's present list.
    """

    request: Compaction
    table: Described | None
    write_ids: ValidWriteIdList
    txns: ValidTxnList

    @property
    def location(self) -> str:
        """The location of the table or partition; "" if there is none."""
        return self.table.location.rstrip("/") if self.table is not None and self.table.partition_exists else ""


@dataclass(frozen=True)
class AbortCleaning:
    """An entity with writes of aborted transactions, and the verdict of its table."""

    entity: Entity
    gate: Gate
    table: Described | None
    write_ids: ValidWriteIdList
    txns: ValidTxnList


@dataclass(frozen=True)
class CleanerService:
    """The database's side of the Cleaner."""

    db: Database
    settings: CompactionSettings
    catalog: EntityCatalog = OWN_CATALOG

    @property
    def threads(self) -> int:
        """The number of tables and partitions that are cleaned at a time."""
        return self.db.threads(self.settings.cleaner_threads)

    def waiting(self) -> list[tuple[Compaction, Gate]]:
        """Return the next request of each table or partition, and the verdict on it.

        The reason of a wait is recorded, so that SHOW COMPACTIONS names the blocker.
        """
        with self.db.begin(durable=False) as pg:
            ready = queue.select_in_state(pg, CompactionState.READY_FOR_CLEANING)
            gates = self._gates(pg, ready)
            result = [
                (request, gates[request.id]) for request in next_in_line(ready, pg.now, self.settings.cleaner_retention)
            ]
            for request, verdict in result:
                if verdict.verdict is CleaningVerdict.WAIT and verdict.reason != request.error_message:
                    queue.update_cleaner_waiting(pg, request.id, verdict.reason)
            return result

    def start(self, request: Compaction) -> Cleaning | Gate | None:
        """Take up a request: None if it is gone or may not be cleaned (any more); a Gate: its table forbids it.

        Everything is decided again here, so that neither two Cleaners at once nor a slow Cleaner does harm. The
        beginning is on disk before a file goes: readers of the past check it.
        """
        with self.db.begin() as pg:
            if queue.lock_ready_for_cleaning(pg, request.id) is None:
                return None
            lists = components.select_lists(pg, request.entity.table)  # A later commit must hide no reader.
            siblings = [sibling for sibling in queue.select_queue_of(pg, request.entity) if sibling.has_files_to_clean]
            gates = self._gates(pg, siblings)
            if request.id not in gates or gates[request.id].verdict is not CleaningVerdict.CLEAN:
                return None
            table = self.catalog.described(pg, request.entity)
            kept = self._of_table(pg, table, request)
            if kept.verdict is CleaningVerdict.REFUSE:
                queue.move_to_history(
                    pg, request.id, CompactionState.READY_FOR_CLEANING, CompactionState.REFUSED, kept.reason
                )
            if kept.verdict is CleaningVerdict.WAIT:
                queue.update_cleaner_waiting(pg, request.id, kept.reason, kept.not_before)
            if kept.verdict is not CleaningVerdict.CLEAN:
                return kept
            readers = self._readers(pg, request, lists.txns.high_watermark)
            if is_hidden(request, readers):
                return Gate(CleaningVerdict.WAIT, "a transaction says what it reads, or ends, at this moment")
            queue.update_cleaner_started(pg, request.id)
            hidden = [sibling.txn_id for sibling in siblings if sibling.txn_id and is_hidden(sibling, readers)]
            return Cleaning(request, table, lists.write_ids, cleaning_txns(lists.txns, hidden, readers))

    def leave(self, request: Compaction, reason: str, pause: timedelta | None = None) -> None:
        """Record that no file could be removed yet.

        The request stays ready, and is checked again at once, or after a pause.
        """
        with self.db.begin(durable=False) as pg:
            queue.update_cleaner_waiting(pg, request.id, reason, None if pause is None else pg.now + pause)

    def clean(self, cleaning: Cleaning, keep: Collection[int], covered: Covered) -> int | None:
        """Move a request from ready for cleaning to succeeded.

        Forget the compacted writes (COMP-21), and return their number.
        ``keep``: aborted write ids whose rows still lie among committed rows; ``covered``: the base that makes later
        publications void. None: another Cleaner was faster. Writes are forgotten in batches; after a crash between them
        the request is still ready, and cleaned again.

        Serialises on: the request's row.
        """
        request = cleaning.request
        up_to = request.highest_write_id or 0
        count, last = 0, None
        while True:
            with self.db.begin() as pg:
                if queue.lock_ready_for_cleaning(pg, request.id) is None:
                    return None
                completed = store.delete_completed(pg, request.entity, up_to)
                page = store.select_aborted(pg, request.entity, cleaning.txns.aborted, last)
                count += completed + store.delete_aborted(pg, request.entity, page, up_to, keep, covered)
                last = page[-1] if page else last
                if max(completed, len(page)) < store.BATCH:
                    store.update_cleaned(pg, request.entity, cleaning.txns.aborted)
                    queue.move_to_history(
                        pg, request.id, CompactionState.READY_FOR_CLEANING, CompactionState.SUCCEEDED, None
                    )
                    queue.delete_retries(pg, request.entity)
                    return count

    def end(self, request: Compaction, state: CompactionState, message: str | None) -> bool:
        """End a request that is READY_FOR_CLEANING, and move it to the history.

        ``state``: REFUSED, FAILED, or SUCCEEDED where the table or partition no longer exists.
        """
        with self.db.begin() as pg:
            return queue.move_to_history(pg, request.id, CompactionState.READY_FOR_CLEANING, state, message)

    def fail_attempt(self, request: Compaction, message: str) -> bool:
        """Record a failed attempt: it is repeated after a doubling pause, or given up.

        Return True if it is given up.
        """
        failures = request.failures + 1
        with self.db.begin() as pg:
            if is_final_failure(failures, self.settings.cleaner_retry_maxattempts):
                queue.move_to_history(
                    pg, request.id, CompactionState.READY_FOR_CLEANING, CompactionState.FAILED, message
                )
                return True
            delay = cleaner_retry_delay(failures, self.settings.cleaner_retry_retention)
            queue.update_cleaner_failure(pg, request.id, failures, message, pg.now + delay)
            return False

    def aborted_entities(self) -> list[tuple[Entity, Compaction | None]]:
        """Return entities with too many or too old aborted writes, or files of an aborted compaction, in their order.

        Each comes with the marker of an earlier failure whose pause is over, if any.
        """
        with self.db.begin(durable=False) as pg:
            retries = {
                request.entity: request
                for request in queue.select_in_state(pg, CompactionState.READY_FOR_CLEANING)
                if request.type is CompactionType.ABORT_TXN_CLEANUP
            }
            due = set(components.select_aborted_compactions(pg))
            now = pg.now
        due.update(
            aborted.entity
            for aborted in components.every_aborted(self.db, self.settings.fetch_size, cleaned=False)
            if aborted.entity in retries or self._is_due(aborted.txns, aborted.oldest_started_at, now)
        )
        return [(entity, retry) for entity in sorted(due) if not _pauses(retry := retries.get(entity), now)]

    def start_aborted(self, entity: Entity) -> AbortCleaning:
        """Read the present state of an entity whose turn has come; the list of entities may be hours old."""
        with self.db.begin(durable=False) as pg:
            table = self.catalog.described(pg, entity)
            lists = components.select_lists(pg, entity.table)
            return AbortCleaning(entity, self._of_table(pg, table), table, *lists)

    def shared_with(self, table: Described) -> str | None:
        """Return another transactional table with the same directory."""
        with self.db.begin(durable=False) as pg:
            return self.catalog.sharer(pg, table)

    def places_of_others(self, table: Described, location: str) -> list[str]:
        """Return places of others inside a directory: databases, tables and, below a partition, other partitions."""
        with self.db.begin(durable=False) as pg:
            return self.catalog.places_inside(pg, table, location)

    def is_still(self, table: Described) -> bool:
        """Return True if the name and place belong to the table that was looked up; called before each deletion."""
        with self.db.begin(durable=False) as pg:
            return entities.is_still(table, self.catalog.described(pg, table.entity))

    def forget_aborted(self, cleaning: AbortCleaning, keep: Collection[int], covered: Covered) -> int:
        """Forget the aborted writes that were known when their files, now gone, were listed, in batches.

        Return their number.
        ``keep`` and ``covered``: as for ``clean``. Remaining writes are not looked up again.
        """
        count, more = 0, True
        last: AbortedWrite | None = None
        while more:
            with self.db.begin() as pg:
                page = store.select_aborted(pg, cleaning.entity, cleaning.txns.aborted, last)
                count += store.delete_aborted(pg, cleaning.entity, page, None, keep, covered)
                more = len(page) == store.BATCH
                if more:
                    last = page[-1]
                else:
                    store.update_cleaned(pg, cleaning.entity, cleaning.txns.aborted)
                queue.delete_retries(pg, cleaning.entity)
        return count

    def fail_abort_cleaning(self, entity: Entity, retry: Compaction | None, message: str) -> None:
        """Record a failed clean-up of aborted writes: it is repeated after a doubling pause, without an end."""
        with self.db.begin() as pg:
            failures = (retry.failures if retry else 0) + 1
            not_before = pg.now + cleaner_retry_delay(min(failures, 20), self.settings.cleaner_retry_retention)
            if retry is None or not queue.update_cleaner_failure(pg, retry.id, failures, message, not_before):
                queue.insert_ready_for_cleaning(
                    pg, NewRequest(entity, CompactionType.ABORT_TXN_CLEANUP), None, None, message, not_before
                )

    def require_available(self) -> None:
        """Raise UnavailableError if the whole catalog cannot be reached now, not just a single table."""
        entities.require_available(self.db, self.catalog)

    def partitions(self, entity: Entity) -> list[tuple[str, str]]:
        """Return (name, location) of every partition of the entity's table."""
        with self.db.begin(durable=False) as pg:
            return self.catalog.all_partitions(pg, entity.table)

    def user_of_location(self, location: str, left_by: Entity) -> str | None:
        """Return the object that has a directory left by a table or partition, or a directory above or below it."""
        with self.db.begin(durable=False) as pg:
            return self.catalog.user_of(pg, location, left_by)

    def is_database_of(self, table: TableName, directory: str) -> bool:
        """Return True if a directory may be that of a table's database.

        The database may exist, or another object may have the directory.
        """
        with self.db.begin(durable=False) as pg:
            exists = self.catalog.database_parameters(pg, table) is not None
            return exists or self.catalog.user_of(pg, directory) is not None

    def database_parameters(self, table: TableName) -> dict[str, str]:
        """Return the parameters of a table's database, even if the table was dropped."""
        with self.db.begin(durable=False) as pg:
            return self.catalog.database_parameters(pg, table) or {}

    def _gates(self, pg: PgTx, ready: list[Compaction]) -> dict[int, Gate]:
        states = components.select_txn_states(pg, [request.txn_id for request in ready if request.txn_id])
        gates = {}
        oldest = store.select_oldest_open(pg)
        for request in ready:
            state = states.get(request.txn_id or 0)
            up_to = request.next_txn_id or 0
            held = oldest is not None and oldest <= up_to  # For most requests this is False, and a query is saved.
            open_txns = store.select_open_txns(pg, up_to, request.entity.table) if held else []
            decided = gate(
                request,
                pg.now,
                self.settings.cleaner_retention,
                state,
                open_txns,
                per_table=self.settings.use_min_history,
            )
            if decided.verdict is CleaningVerdict.NOTE_END:
                queue.update_committed(pg, request.id)  # The exact time is unknown, but it is not later than now.
                decided = decided._replace(verdict=CleaningVerdict.WAIT)
            gates[request.id] = decided
        return gates

    def _of_table(self, pg: PgTx, table: Described | None, request: Compaction | None = None) -> Gate:
        """Return the verdict of the table; ``request`` None: for files of aborted transactions."""
        if table is None:
            return Gate(CleaningVerdict.CLEAN)
        replaced_at = shares = None
        if table.partition_exists and (request is None or request.abandoned_place is None):
            sharer = self.catalog.sharer(pg, table)
            shares = shared(table.location, sharer) if sharer else None
            replaced_at = (request.committed_at or request.enqueued_at) if request is not None else None
        return gate_of_table(
            table.parameters, table.partition_parameters, pg.now, replaced_at=replaced_at, shares=shares
        )

    def _readers(self, pg: PgTx, request: Compaction, up_to: int) -> list[OpenTxn]:
        """Return transactions that may still read this table.

        Transactions that declared other tables are marked as waived.
        """
        per_table, table = self.settings.use_min_history, request.entity.table
        if per_table:
            store.insert_waived(pg, request.next_txn_id or 0, table)
        return [txn for txn in store.select_open_txns(pg, up_to, table) if may_come_to_read(txn, per_table=per_table)]

    def _is_due(self, txns: int, oldest: datetime, now: datetime) -> bool:
        return Aborts.judged(
            txns, oldest, now, self.settings.aborted_txn_threshold, self.settings.aborted_txn_time_threshold
        ).count


def _pauses(retry: Compaction | None, now: datetime) -> bool:
    return retry is not None and retry.not_before is not None and now < retry.not_before
