"""The compaction queue as clients and Workers use it: one RPC, one PostgreSQL transaction.

Rule: a request is refused if it repeats a request that waits, that runs, or that finished with nothing written since.
A Worker's writes are fenced by its claim (worker id and attempt): without the claim they are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from metastore.acid.bucket import MAX_WRITER_ID
from metastore.compaction.queue.rules.ordering import sort_columns
from metastore.compaction.queue.rules.properties import refused_for_others, refused_output, refused_property
from metastore.compaction.queue.rules.requests import (
    LOCATION,
    Claim,
    Compaction,
    CompactionState,
    Entity,
    is_active_duplicate,
    is_left_by,
)
from metastore.compaction.queue.rules.scaling import workers_wanted
from metastore.compaction.queue.store import components, listing, loads
from metastore.compaction.queue.store import requests as queue
from metastore.compaction.queue.store.entities import OWN_CATALOG, Described, EntityCatalog
from metastore.compaction.queue.store.requests import Backlog, Filter, NewRequest
from metastore.config import CompactionSettings
from metastore.config.compaction import stored_pool
from metastore.db.engine import Database, PgTx
from metastore.db.pieces import Pieces
from metastore.errors import (
    ClaimLostError,
    ConflictRetryError,
    InvalidOperationError,
    InvalidRequestError,
    NoSuchObjectError,
)
from metastore.ids import TableName
from metastore.roots import Roots, parts_of, refusal

ABORTED_BY_USER = "Compaction Aborted by Abort Comapction request."  # Hive's text, with Hive's spelling
REFUSED = "refused"
MOST_BUCKETS = MAX_WRITER_ID + 1
LOAD_WINDOW = timedelta(hours=1)
"""How far back arrivals and durations count for the number of Workers."""


class CompactResult(NamedTuple):
    """The answer to a request. ``existing`` is the request that stands in the way of a refused request."""

    id: int
    state: str
    accepted: bool
    message: str | None = None
    existing: Compaction | None = None


class AbortResult(NamedTuple):
    """What became of an id of ABORT COMPACTIONS."""

    id: int
    status: str
    message: str


@dataclass(frozen=True)
class CompactionService:
    """Requests, claims and their ends."""

    db: Database
    settings: CompactionSettings
    roots: Roots | None = None
    """Where the Cleaner may remove something; None: everywhere."""
    catalog: EntityCatalog = OWN_CATALOG

    def compact2(self, request: NewRequest) -> CompactResult:
        """Queue a compaction, or say which request makes it pointless.

        A partitioned table without a partition means each of its partitions with writes that no compaction has covered:
        Hive's own clients ask for them singly, others get all of them here.

        Serialises on: the entity's row in the unique index of active requests.
        Raises: NoSuchObjectError, InvalidOperationError (not transactional), InvalidRequestError for a property that
            the Cleaner would obey or that must not reach a job, for an order or a number of buckets that cannot be.
        """
        if LOCATION in request.properties:
            raise InvalidRequestError(
                f"The property {LOCATION} of a compaction says what submit_for_cleanup removes: "
                f"it cannot be given to a compaction of {request.entity}"
            )
        refused = refused_property(request.properties) or refused_output(request.properties)
        if refused is not None:
            raise InvalidRequestError(refused)
        sort_columns(request.order_by)
        if (request.number_of_buckets or 0) > MOST_BUCKETS:
            raise InvalidRequestError(
                f"{request.entity} cannot be dealt to {request.number_of_buckets} buckets: {MOST_BUCKETS} are the most "
                "that row ids can tell apart"
            )
        with self.db.begin() as pg:
            described = _compactable(self.catalog.described(pg, request.entity), request.entity)
            ignored = None if described.is_orc else refused_for_others(request.properties)
            if ignored is not None:
                raise InvalidRequestError(ignored)
            if not described.lacks_partition:
                return self._queue(pg, request)
            names = components.select_written_partitions(pg, request.entity.table)
            results = [self._queue(pg, replace(request, entity=Entity(request.entity.table, name))) for name in names]
            return _combined(request.entity.table, names, results)

    def show_compact(self, wanted: Filter, *, is_old_client: bool) -> Pieces[bytes]:
        """SHOW COMPACTIONS as bytes for clients; ``is_old_client``: without those of types that it does not know."""
        found, _ = listing.list_of(wanted, is_old_client=is_old_client).read(self.db)
        return found

    def backlog(self) -> Backlog:
        """What there is to do for the Workers of this service's pools."""
        with self.db.begin(durable=False) as pg:
            return queue.count_backlog(pg, self.settings.served_pools, self.settings.worker_pool_timeout)

    def workers_wanted(self) -> int:
        """Return how many Workers are enough for the pools of this service, of each pool at most its limit."""
        with self.db.begin(durable=False) as pg:
            found = loads.select_loads(pg, pg.now - LOAD_WINDOW)
        wanted = {stored_pool(load.pool): workers_wanted(load, LOAD_WINDOW) for load in found}
        limits, pools = self.settings.limits, set(self.settings.served_pools)
        return sum(min(wanted.get(pool, 0), limits.get(pool, wanted.get(pool, 0))) for pool in pools)

    def find_next_compact2(self, worker_id: str, worker_version: str | None, pool: str | None) -> Compaction | None:
        """Claim the oldest request for a remote worker, which renews no lease.

        Serialises on: the claimed row; requests that others are claiming are skipped.
        """
        with self.db.begin() as pg:
            return queue.claim_next(
                pg,
                worker_id,
                worker_version,
                stored_pool(pool) or None,
                self.settings.worker_pool_timeout,
                shares=None,
                limits=self.settings.limits,
            )

    def update_compactor_state(
        self, claim: Claim, highest_write_id: int | None, run_as: str | None, txn_id: int
    ) -> None:
        """Note the snapshot and transaction of a running compaction, and tie the transaction to what it writes.

        Serialises on: the request's row. Raises: ClaimLostError.
        """
        with self.db.begin() as pg:
            _require(queue.update_started(pg, claim, highest_write_id, run_as, txn_id), claim)
            running = queue.select_queued(pg, claim.id)
            if running is not None:
                components.insert_compaction_component(pg, running.entity, txn_id, highest_write_id or 0)

    def set_hadoop_jobid(self, job_id: str, request_id: int) -> None:
        """Note the job's id. Raises: InvalidOperationError unless a remote Worker has claimed it and named no other."""
        with self.db.begin(durable=False) as pg:
            if not queue.update_remote_job_id(pg, request_id, job_id):
                raise InvalidOperationError(
                    f"Compaction {request_id} is not claimed by a remote Worker that has not "
                    "named its job yet: nothing was noted"
                )

    def mark_compacted(self, claim: Claim) -> None:
        """Working → ready for cleaning. A request without a transaction is stamped with the present instead.

        Serialises on: the request's row. Raises: ClaimLostError.
        """
        with self.db.begin() as pg:
            _require(queue.update_ready_for_cleaning(pg, claim), claim)
            finished = queue.select_queued(pg, claim.id)
            if finished is not None and not finished.txn_id:
                queue.update_committed(pg, claim.id)

    def mark_failed(self, claim: Claim, message: str | None) -> None:
        """Working → failed.

        Raises: ClaimLostError, InvalidOperationError when the request is not working.
        """
        with self.db.begin() as pg:
            self._end(pg, claim, CompactionState.FAILED, message)

    def mark_refused(self, claim: Claim, message: str | None) -> None:
        """Working → refused.

        Raises: ClaimLostError, InvalidOperationError when the request is not working.
        """
        with self.db.begin() as pg:
            self._end(pg, claim, CompactionState.REFUSED, message)

    def mark_cleaned(self, claim: Claim) -> None:
        """Working → succeeded, for a Worker that found nothing to do.

        What is ready for cleaning is ended by our Cleaner alone, which has seen that the files are gone: else an
        aborted write would be forgotten while its rows still lie there, and they would come to life.

        Raises: ClaimLostError, InvalidOperationError when the request is not working.
        """
        with self.db.begin() as pg:
            self._end(pg, claim, CompactionState.SUCCEEDED, None)

    def find_columns_with_stats(self, entity: Entity) -> list[str]:
        """The columns of a table or partition that have statistics."""
        with self.db.begin(durable=False) as pg:
            return self.catalog.columns_with_statistics(pg, entity)

    def get_latest_committed_compaction_info(
        self, table: TableName, partitions: Sequence[str] | None, last_id: int | None
    ) -> list[Compaction]:
        """The newest finished compaction of each partition (or of the table)."""
        with self.db.begin(durable=False) as pg:
            return queue.select_latest_committed(pg, table, partitions, last_id)

    def abort_compactions(self, request_ids: Sequence[int]) -> list[AbortResult]:
        """Initiated → aborted, each id in a transaction of its own; the failure of an id does not touch the others."""
        return [self._abort(request_id) for request_id in dict.fromkeys(request_ids)]

    def submit_for_cleanup(self, request: NewRequest, highest_write_id: int, txn_id: int) -> bool:
        """Queue what a soft drop left behind for the Cleaner; it becomes due when that transaction commits.

        Only a directory with the name of what was dropped, where such a one lies, is taken for its own.
        Raises: InvalidRequestError.
        """
        if txn_id <= 0:
            raise InvalidRequestError("submit_for_cleanup needs the id of the transaction that drops the object")
        location = request.properties.get(LOCATION)
        if location and self.roots is not None and not self.roots.covers(location, inside=True):
            raise InvalidRequestError(f"{request.entity} cannot be cleaned up: {refusal(location)}")
        with self.db.begin() as pg:
            homes = self.catalog.homes(pg, request.entity) if location else None
            if homes is not None and not is_left_by(parts_of(location or ""), map(parts_of, homes)):
                raise InvalidRequestError(
                    f"{request.entity} cannot be cleaned up: {location} is not where it would be "
                    f"({', '.join(homes) or 'its database does not exist'}), so whoever has written there removes it"
                )
            queue.insert_ready_for_cleaning(pg, request, highest_write_id, txn_id)
        return True

    def _queue(self, pg: PgTx, request: NewRequest) -> CompactResult:
        mark = components.select_lists(pg, request.entity.table).write_ids.for_compactor().high_watermark
        for existing in queue.select_queue_of(pg, request.entity):
            if is_active_duplicate(existing, request.type, mark):
                return _refusal(existing)
        request_id = queue.insert_request(pg, request)
        if request_id is not None:
            return CompactResult(request_id, CompactionState.INITIATED.display, accepted=True)
        for existing in queue.select_queue_of(pg, request.entity):  # somebody else's insert, committed meanwhile
            if is_active_duplicate(existing, request.type, mark):
                return _refusal(existing)
        raise ConflictRetryError(f"Another request for {request.entity} came and went at the same moment, try again")

    def _end(self, pg: PgTx, claim: Claim, state: CompactionState, message: str | None) -> None:
        if queue.move_to_history(pg, claim.id, CompactionState.WORKING, state, message, claim):
            return
        existing = queue.select_any(pg, [claim.id])
        if existing and existing[0].state is CompactionState.WORKING:
            raise ClaimLostError(_lost(claim))
        was = f"is {existing[0].state.display}" if existing else "is not queued"
        raise InvalidOperationError(f"Compaction {claim.id} {was}, so it cannot be marked {state.display}")

    def _abort(self, request_id: int) -> AbortResult:
        with self.db.begin() as pg:
            if queue.move_to_history(
                pg, request_id, CompactionState.INITIATED, CompactionState.ABORTED, ABORTED_BY_USER
            ):
                return AbortResult(request_id, "Success", "Successfully aborted compaction")
            existing = queue.select_any(pg, [request_id])
        if not existing:
            return AbortResult(request_id, "Error", "No Such Compaction Id Available")
        return AbortResult(
            request_id,
            "Error",
            f"Error while aborting compaction as compaction is in state-{existing[0].state.display}",
        )


def _compactable(table: Described | None, entity: Entity) -> Described:
    if table is None:
        raise NoSuchObjectError(f"Table {entity.table} does not exist: there is nothing to compact")
    if not table.is_transactional:
        raise InvalidOperationError(
            f"Compaction is not allowed on non-ACID table {entity.table}: only tables with "
            "'transactional'='true' have something to compact"
        )
    if not table.partition_exists:
        raise NoSuchObjectError(f"{entity.table} has no partition {entity.partition}: there is nothing to compact")
    return table


def _refusal(existing: Compaction) -> CompactResult:
    return CompactResult(
        -1,
        REFUSED,
        accepted=False,
        existing=existing,
        message=(f"Compaction is already scheduled with state='{existing.state.display}' and id={existing.id}"),
    )


def _combined(table: TableName, names: Sequence[str], results: Sequence[CompactResult]) -> CompactResult:
    """One answer for a request that stands for several partitions: the first id, and all of them in the message."""
    each = "; ".join(
        f"{name}: id {result.id}" if result.accepted else f"{name}: {result.message}"
        for name, result in zip(names, results, strict=True)
    )
    accepted = next((result for result in results if result.accepted), None)
    if accepted is not None:
        return accepted._replace(message=each)
    if results:
        return results[0]._replace(message=each)
    return CompactResult(
        -1,
        REFUSED,
        accepted=False,
        message=(
            f"{table} is partitioned and nothing has been written to its partitions since they were last compacted; "
            "name a partition to compact it all the same"
        ),
    )


def _require(held: bool, claim: Claim) -> None:  # noqa: FBT001 - reads as "require this"
    if not held:
        raise ClaimLostError(_lost(claim))


def _lost(claim: Claim) -> str:
    return (
        f"Compaction {claim.id} is not claimed by worker {claim.worker_id} (attempt {claim.attempt}) any more: "
        "stop working on it and abort its transaction"
    )
