"""Answers for an operator: the plan of a compaction, the reason why there is none, and why old files remain.

This service looks at the directories as the Initiator does, and changes nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from metastore.acid.state import acid_state
from metastore.compaction.cleaning.rules import CleaningVerdict, gate, gate_of_table, is_kept, next_in_line
from metastore.compaction.explaining import store
from metastore.compaction.explaining.rules import (
    Holder,
    Plan,
    Reason,
    delays_of_cleaning,
    estimate,
    plan,
    why_not_cleaned,
    why_not_compacted,
    writers_of,
)
from metastore.compaction.initiating.rules import (
    Aborts,
    Due,
    EligibilityLimits,
    Thresholds,
    abort_rules,
    ineligible,
    merged,
    verdict,
)
from metastore.compaction.inventory.rules import measure
from metastore.compaction.queue.rules.requests import Compaction, CompactionState, CompactionType, Entity
from metastore.compaction.queue.rules.turns import full_pools
from metastore.compaction.queue.store import components
from metastore.compaction.queue.store import requests as queue
from metastore.compaction.queue.store.components import Lists
from metastore.compaction.queue.store.entities import OWN_CATALOG, Described, EntityCatalog
from metastore.compaction.queue.store.requests import Filter
from metastore.config import CompactionSettings
from metastore.db.engine import Database, PgTx
from metastore.errors import InvalidOperationError, MetastoreError, NoSuchObjectError
from metastore.files import Files
from metastore.ids import TableName

_HISTORY = 200
"""Ended compactions that an estimate looks through."""


class Examined(NamedTuple):
    """A table or partition. ``delays``: transactions that would delay the cleaning of a compaction that commits now."""

    entity: Entity
    location: str
    plan: Plan
    takes: timedelta | None
    takes_by: str
    compaction: Reason
    cleanings: list[Reason]
    held: int
    delays: list[Holder]


class Examination(NamedTuple):
    """The answer. ``left_out``: the number of further partitions, which were not examined."""

    entities: list[Examined]
    left_out: int


@dataclass(frozen=True)
class _OfTable:
    """The facts that all partitions of a table share, as of one instant."""

    now: datetime
    earlier: list[Compaction]
    lists: Lists
    holders: list[Holder]
    aborts: dict[Entity, Aborts]
    full: dict[str, int]
    """The limits of the pools of which no more may be worked on."""


@dataclass(frozen=True)
class _Facts:
    """All facts about an entity but its files."""

    whole: _OfTable
    entity: Entity
    table: Described
    queued: list[Compaction]
    history: list[Compaction]
    states: dict[int, str]


@dataclass(frozen=True)
class ExplainingService:
    """The service that examines and explains."""

    db: Database
    settings: CompactionSettings
    files: Files
    catalog: EntityCatalog = OWN_CATALOG

    def examine(self, table: TableName, partition: str, limit: int) -> Examination:
        """Examine a table or partition; of a partitioned table all partitions with something to compact or to clean.

        Raises: NoSuchObjectError, InvalidOperationError (not transactional).
        """
        with self.db.begin(durable=False) as pg:
            described = self.catalog.described(pg, Entity(table, partition))
            if described is None or not described.partition_exists:
                what = f"{table} has no partition {partition}" if described else f"Table {table} does not exist"
                raise NoSuchObjectError(f"{what}: there is nothing to compact")
            if not described.is_transactional:
                raise InvalidOperationError(
                    f"{table} is not transactional: it has no deltas, and nothing of it is ever compacted"
                )
            whole = self._of_table(pg, table)
            names = self._partitions(pg, table, whole.aborts) if described.lacks_partition else [partition]
            facts = [
                self._facts(pg, whole, Entity(table, name), of_name)
                for name in names[:limit]
                if (of_name := self.catalog.described(pg, Entity(table, name))) is not None
            ]
        return Examination([self._each(each) for each in facts], max(0, len(names) - limit))

    def _partitions(self, pg: PgTx, table: TableName, aborts: dict[Entity, Aborts]) -> list[str]:
        """Return the partitions that the Initiator or the Cleaner look at.

        "" stands for writes that were aborted before they named a partition.
        """
        queued = queue.select_shown(pg, Filter(catalog=table.catalog, db=table.db, table=table.table))
        waiting = [row.entity.partition for row in queued if row.ended_at is None and row.entity.partition]
        aborted = [entity.partition for entity, left in aborts.items() if entity.partition or left.too_old]
        return sorted({*components.select_written_partitions(pg, table), *waiting, *aborted})

    def _of_table(self, pg: PgTx, table: TableName) -> _OfTable:
        limits = self.settings.limits
        return _OfTable(
            pg.now,
            queue.select_shown(pg, Filter(state=CompactionState.SUCCEEDED, order=(("id", False),), limit=_HISTORY)),
            components.select_lists(pg, table),
            store.select_holders(pg, table),
            self._aborts(pg, table),
            {pool: limits[pool] for pool in full_pools(queue.count_working(pg), limits)} if limits else {},
        )

    def _aborts(self, pg: PgTx, table: TableName) -> dict[Entity, Aborts]:
        settings = self.settings
        rules = abort_rules(
            settings.aborted_txn_threshold,
            settings.aborted_txn_time_threshold,
            by_cleaner=settings.clean_aborts_using_cleaner,
        )
        return merged(
            judged
            for rule in rules
            for judged in rule.judged(components.select_aborted(pg, None, cleaned=rule.cleaned, table=table), pg.now)
        )

    def _facts(self, pg: PgTx, whole: _OfTable, entity: Entity, table: Described) -> _Facts:
        queued = queue.select_queue_of(pg, entity)
        return _Facts(
            whole,
            entity,
            table,
            queued,
            queue.select_history_of(pg, entity),
            components.select_txn_states(pg, [request.txn_id for request in queued if request.txn_id]),
        )

    def _each(self, facts: _Facts) -> Examined:
        """Return the examination of an entity; a failed look is an answer, so that the others are examined too."""
        try:
            return self._examined(facts)
        except (MetastoreError, OSError) as error:
            reason = f"it cannot be looked at, and so it is not by the Initiator: {type(error).__name__}: {error}"
            return Examined(
                facts.entity,
                facts.table.location.rstrip("/"),
                Plan(None, reason),
                None,
                "",
                Reason(f"Nothing is done: {reason}"),
                self._cleanings(facts),
                0,
                [],
            )

    def _examined(self, facts: _Facts) -> Examined:
        settings, table, write_ids = self.settings, facts.table, facts.whole.lists.write_ids.for_compactor()
        per_table = settings.use_min_history
        location = table.location.rstrip("/")
        listing = self.files.listing(location) if table.partition_exists and not table.lacks_partition else []
        state = acid_state(
            listing, write_ids, facts.whole.lists.txns, lambda path: self.files.read(f"{location}/{path}")
        )
        aborts = facts.whole.aborts.get(facts.entity, Aborts())
        thresholds = Thresholds(settings.delta_num_threshold, settings.delta_pct_threshold)
        limits = EligibilityLimits(
            settings.failed_compacts_threshold, settings.failed_retry_time, settings.compact_insert_only
        )
        no = ineligible(facts.entity, table, facts.queued, facts.history, aborts, limits, facts.whole.now)
        due = (
            Due(None, "there is no such partition (any more)")
            if not table.partition_exists
            else verdict(
                table,
                aborts,
                facts.queued,
                None if table.lacks_partition else state,
                write_ids,
                thresholds,
                settings.aborted_txn_threshold,
            )
        )
        planned = plan(due, state, measure(state), thresholds.overridden_by(table.parameters))
        takes, takes_by = estimate(facts.whole.earlier, planned.type or CompactionType.MAJOR, facts.entity)
        writers = writers_of(facts.whole.holders, facts.whole.lists.write_ids)
        return Examined(
            facts.entity,
            location,
            planned,
            takes,
            takes_by,
            why_not_compacted(
                facts.entity, no, planned, facts.queued, writers, settings.check_interval, facts.whole.full
            ),
            self._cleanings(facts),
            state.held_size,
            delays_of_cleaning(facts.whole.holders, per_table=per_table),
        )

    def _cleanings(self, facts: _Facts) -> list[Reason]:
        return [self._cleaning(facts, request) for request in facts.queued if request.has_files_to_clean]

    def _cleaning(self, facts: _Facts, request: Compaction) -> Reason:
        settings = self.settings
        retention = settings.cleaner_retention
        decision = gate(
            request,
            facts.whole.now,
            retention,
            facts.states.get(request.txn_id or 0),
            [holder.txn for holder in facts.whole.holders],
            per_table=settings.use_min_history,
        )
        text = "" if decision.verdict is CleaningVerdict.CLEAN else decision.reason
        waiting = [other for other in facts.queued if other.has_files_to_clean]
        for first in next_in_line(waiting, facts.whole.now, retention):
            if not text and first.id != request.id:
                text = f"compaction {first.id} of it is cleaned first"
        since = request.committed_at or request.enqueued_at
        kept = gate_of_table(
            facts.table.parameters, facts.table.partition_parameters, facts.whole.now, replaced_at=since
        )
        text = text or kept.reason
        # While the retention time runs, ending a reader would not free the files.
        holders = [] if is_kept(request, facts.whole.now, retention) else facts.whole.holders
        return why_not_cleaned(request, text, holders, per_table=settings.use_min_history)
