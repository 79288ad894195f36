"""The Initiator's questions and reports to the database."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.compaction.initiating.rules import AbortRule, Aborts, abort_rules, merged
from metastore.compaction.inventory import store as inventory
from metastore.compaction.inventory.rules import COMMIT_MARGIN, Measured, MeasuredListing, StoredInventory
from metastore.compaction.measuring import store as measures
from metastore.compaction.measuring.rules import DeltasOf
from metastore.compaction.queue.rules.requests import (
    Claim,
    Compaction,
    CompactionState,
    CompactionType,
    Entity,
    Retention,
    expendable,
    is_claim_dead,
    is_silent,
    too_deadly,
)
from metastore.compaction.queue.store import components, opens
from metastore.compaction.queue.store import requests as queue
from metastore.compaction.queue.store.entities import OWN_CATALOG, Described, EntityCatalog, require_available
from metastore.compaction.queue.store.requests import NewRequest
from metastore.config import CompactionSettings
from metastore.db.engine import Database, PgTx
from metastore.txns.core import store as txn_store
from metastore.txns.core.rules import AbortCode

MEASURED_AGAIN = timedelta(days=1)
"""The time after which deltas are measured again, though no change is known."""

HISTORY_PAGE = 5000
"""Rows of the history that are looked at at a time; more than are kept of one table or partition."""


@dataclass(frozen=True)
class Candidate:
    """A table or partition that may be due."""

    entity: Entity
    aborts: Aborts = field(default_factory=Aborts)


class Candidates(NamedTuple):
    """The candidates of a round; the next round needs only writes since ``as_of``."""

    as_of: datetime
    found: list[Candidate]


@dataclass(frozen=True)
class CandidateFacts:
    """Everything about a candidate but its files, as of one instant."""

    now: datetime
    table: Described | None
    queued: list[Compaction]
    history: list[Compaction]
    write_ids: ValidWriteIdList
    txns: ValidTxnList
    opens: float
    known: Measured | None
    """The result of the last listing, if another would find the same."""


class Revoked(NamedTuple):
    """A claim that was taken back, and the reason."""

    compaction: Compaction
    reason: str


@dataclass(frozen=True)
class InitiatorService:
    """The database's side of the Initiator and of the history's housekeeping."""

    db: Database
    settings: CompactionSettings
    catalog: EntityCatalog = OWN_CATALOG

    def candidates(self, since: datetime | None, again: Iterable[Entity] = ()) -> Candidates:
        """Return entities written after ``since`` (None: ever), those to check again, and those with many aborts."""
        with self.db.begin(durable=False) as pg:
            now = pg.now
        written = dict.fromkeys(again)
        written.update(dict.fromkeys(self._written(None if since is None else since - COMMIT_MARGIN)))
        aborts = merged(
            judged
            for rule in self._abort_rules
            for judged in rule.judged(
                components.every_aborted(self.db, self.settings.fetch_size, cleaned=rule.cleaned), now
            )
        )
        return Candidates(
            now, [Candidate(entity, aborts.get(entity, Aborts())) for entity in sorted({*written, *aborts})]
        )

    @property
    def threads(self) -> int:
        """The number of candidates that are examined at a time."""
        return self.db.threads(self.settings.initiator_checks)

    def inputs(self, entities: Sequence[Entity]) -> dict[Entity, CandidateFacts]:
        """Look up candidates, in as many statements as for one. Stored listings are read before the write-id lists."""
        if not entities:
            return {}
        with self.db.begin(durable=False) as pg:
            now = pg.now
            kept = inventory.select_kept(pg, entities)
            described = self.catalog.described_all(pg, entities)
            requests = queue.select_of(pg, entities)
            tables = {entity.table for entity in entities}
            lists = components.select_lists_of(pg, tables)
            opened = opens.select_opens(pg, tables)
            return {
                entity: CandidateFacts(
                    now,
                    described.get(entity),
                    *requests[entity],
                    *lists[entity.table],
                    opened[entity.table],
                    self._known(kept.get(entity), described.get(entity), now),
                )
                for entity in entities
            }

    def _known(self, kept: StoredInventory | None, table: Described | None, now: datetime) -> Measured | None:
        holds = kept and table and kept.holds(table.location, now, self.settings.listing_max_age)
        return kept.listing.measured if kept and holds else None

    def keep(self, listings: Sequence[MeasuredListing]) -> None:
        """Store the listings. Serialises on: the entities' rows, in their order."""
        with self.db.begin(durable=False) as pg:
            inventory.upsert(pg, listings)

    def forget_old_listings(self) -> None:
        """Forget listings that are too old to be useful."""
        with self.db.begin(durable=False) as pg:
            inventory.delete_before(pg, pg.now - self.settings.listing_max_age)

    def stale_measures(self) -> list[Entity]:
        """Return entities whose measures are older than a compaction or cleaning, or so old that they may be gone."""
        with self.db.begin(durable=False) as pg:
            return measures.select_stale(pg, pg.now - MEASURED_AGAIN, self.settings.fetch_size)

    def note_measures(self, measured: Sequence[DeltasOf]) -> None:
        """Store the measures of deltas. Serialises on: the entities' rows, in their order."""
        with self.db.begin(durable=False) as pg:
            measures.upsert_deltas(pg, measured)

    def enqueue(self, request: NewRequest) -> int | None:
        """Queue a due compaction; None if another process was faster.

        Serialises on: the entity's row in the unique index of active requests.
        """
        with self.db.begin() as pg:
            return queue.insert_request(pg, request)

    def note_not_initiated(self, entity: Entity, initiator_id: str, reason: str) -> bool:
        """Write a history row with the reason why nothing was queued; False if the newest row has the same."""
        with self.db.begin() as pg:
            newest = next(iter(queue.select_history_of(pg, entity)), None)
            if newest is not None and (newest.state, newest.error_message) == (
                CompactionState.DID_NOT_INITIATE,
                reason,
            ):
                return False
            queue.insert_history(
                pg,
                NewRequest(entity, CompactionType.MINOR, initiator_id=initiator_id),
                CompactionState.DID_NOT_INITIATE,
                reason,
            )
            return True

    def require_available(self) -> None:
        """Raise UnavailableError if the whole catalog cannot be reached now, not just a single table."""
        require_available(self.db, self.catalog)

    def revoke_dead_claims(self) -> list[Revoked]:
        """Take back the claims of dead workers, and abort their transactions so that a late commit fails.

        Serialises on: each claimed row; the attempt keeps a claim that was renewed or taken anew meanwhile.
        """
        with self.db.begin() as pg:
            working = queue.select_in_state(pg, CompactionState.WORKING)
            states = components.select_txn_states(pg, [request.txn_id for request in working if request.txn_id])
            revoked = []
            for request in working:
                reason = is_claim_dead(
                    request,
                    pg.now,
                    self.settings.worker_lease,
                    self.settings.worker_timeout,
                    states.get(request.txn_id or 0),
                )
                if reason is not None and self._taken_back(pg, request, reason):
                    revoked.append(Revoked(request, reason))
            orphans = [
                (request.compaction.txn_id, AbortCode.COMPACTION, request.reason)
                for request in revoked
                if request.compaction.txn_id
            ]
            if orphans:
                txn_store.abort(pg, orphans)
            return revoked

    def _taken_back(self, pg: PgTx, request: Compaction, reason: str) -> bool:
        deaths = request.failures + is_silent(request, pg.now, self.settings.worker_lease)
        given_up = too_deadly(deaths, reason)
        if given_up is None:
            return queue.update_waiting_again(pg, request, f"Taken back: {reason}", None, deaths)
        claim = Claim(request.id, request.worker_id, request.attempt)
        return queue.move_to_history(pg, request.id, CompactionState.WORKING, CompactionState.FAILED, given_up, claim)

    def purge_history(self) -> int:
        """Forget history beyond the retention, a page at a time; return the number of removed rows."""
        settings = self.settings
        retention = Retention(
            max(settings.history_succeeded, 1),  # A reader of the past checks how far files have been removed.
            max(settings.history_failed, settings.failed_compacts_threshold),
            settings.history_refused,
            settings.history_did_not_initiate,
            settings.history_timeout,
        )
        count, after, more = 0, None, True
        while more:
            with self.db.begin(durable=False) as pg:
                rows = queue.select_history(pg, after, HISTORY_PAGE)
                more = len(rows) == HISTORY_PAGE
                by_entity: dict[Entity, list[Compaction]] = {}
                for component in rows:
                    by_entity.setdefault(component.entity, []).append(component)
                gone = [row for entity in by_entity.values() for row in expendable(entity, retention, pg.now)]
                queue.delete_history(pg, gone)
            count += len(gone)
            # The last entity may continue on the next page, so that page begins with this entity's remaining rows.
            last = rows[-1].entity if rows else None
            after = next(
                (component.entity for component in reversed(rows) if component.entity != last), after if gone else last
            )
        return count

    def _written(self, since: datetime | None) -> Iterator[Entity]:
        """Yield all pages: a limit must never hide an entity for good."""
        after: Entity | None = None
        while True:
            with self.db.begin(durable=False) as pg:
                page = components.select_written(pg, since, self.settings.fetch_size, after)
            yield from page
            if len(page) < self.settings.fetch_size:
                return
            after = page[-1]

    @property
    def _abort_rules(self) -> tuple[AbortRule, ...]:
        settings = self.settings
        return abort_rules(
            settings.aborted_txn_threshold,
            settings.aborted_txn_time_threshold,
            by_cleaner=settings.clean_aborts_using_cleaner,
        )
