"""The Initiator: it looks at writes since the last round and queues compactions that are due.

Rule: one candidate's failure never stops the others; it becomes a "did not initiate" row with the message. A
candidate that was passed over for a reason that may go away without a new write comes up again in the next round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import NamedTuple

from metastore.acid.state import AcidState, NotEnoughHistoryError, acid_state
from metastore.compaction.initiating.rules import EligibilityLimits, Thresholds, benefit, ineligible, ruled_out, verdict
from metastore.compaction.initiating.service import Candidate, CandidateFacts, InitiatorService, Revoked
from metastore.compaction.inventory.rules import MeasuredListing, measure
from metastore.compaction.measuring.rules import Deltas, DeltasOf, deltas_of
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.compaction.queue.rules.turns import Benefit, head_start
from metastore.compaction.queue.store.entities import Described
from metastore.compaction.queue.store.requests import NewRequest
from metastore.config.compaction import stored_pool
from metastore.errors import UnavailableError
from metastore.files import Files
from metastore.loops.parallel import in_parallel
from metastore.telemetry.logs import get_logger

POOL = "hive.compactor.worker.pool"
_log = get_logger(__name__)


class CandidateOutcome(NamedTuple):
    """The outcome for a candidate. ``id``: the queued request; ``again``: look at it in the next round too.

    ``known``: its directories were known without a listing; ``failed``: it could not be read.
    """

    entity: Entity
    type: CompactionType | None
    reason: str
    id: int | None = None
    again: bool = False
    known: bool = False
    failed: bool = False


@dataclass(frozen=True)
class InitiatorReport:
    """The report of a round.

    ``listed``: directories of tables and partitions; ``known``: candidates without a listing.
    """

    findings: list[CandidateOutcome]
    revoked: list[Revoked]
    listed: int = 0
    known: int = 0

    @property
    def queued(self) -> list[CandidateOutcome]:
        """Return the candidates for which a request was queued."""
        return [finding for finding in self.findings if finding.id is not None]

    @property
    def failed(self) -> dict[str, str]:
        """The candidates that could not be read, with the reason, for the metrics."""
        entities = ", ".join(str(finding.entity) for finding in self.findings if finding.failed)
        return {"compaction_check": entities} if entities else {}


@dataclass
class Initiator:
    """The loop of the Initiator. Its state only saves work: a new Initiator looks at every write that was not cleaned.

    Every Initiator does so again after ``metastore.compactor.listing.max.age``, when kept listings expire as well.
    """

    compactions: InitiatorService
    files: Files
    initiator_id: str
    version: str
    stopping: Event = field(default_factory=Event)
    _since: datetime | None = None
    _began: datetime | None = None
    """The time when it last looked at every entity."""
    _again: set[Entity] = field(default_factory=set)
    _measured: dict[Entity, Deltas] = field(default_factory=dict)
    _listed: list[MeasuredListing] = field(default_factory=list)
    _unmeasured: dict[Entity, str] = field(default_factory=dict)
    """The entities that could not be measured in this round, with the reason."""

    def tick(self) -> InitiatorReport:
        """Take back dead claims and queue compactions that are due."""
        revoked = self.compactions.revoke_dead_claims()
        for claim, reason in revoked:
            _log.warning("compaction_claim_revoked", compaction_id=claim.id, worker_id=claim.worker_id, reason=reason)
        candidates = self.compactions.candidates(self._since, self._again)
        findings: list[CandidateOutcome] = []
        known = listed = 0
        page = self.compactions.settings.fetch_size
        for start in range(0, len(candidates.found), page):
            found = self._looked_at_all(candidates.found[start : start + page])
            findings += found
            known += sum(finding.known for finding in found)
            listed += self._keep_listings()
            if self.stopping.is_set():
                return InitiatorReport(findings, revoked, listed, known)  # The next round starts where this one did.
        listed += self._keep_measures()
        self._look_at_everything_in_time(candidates.as_of)
        self._again = {finding.entity for finding in findings if finding.again}
        for finding in findings:
            fields = {"entity": str(finding.entity), "type": finding.type, "reason": finding.reason}
            if finding.id is not None:
                _log.info("compaction_queued", compaction_id=finding.id, **fields)
            else:
                _log.debug("compaction_not_due", **fields)
        report = InitiatorReport(findings, revoked, listed, known)
        if findings or listed:
            _log.info(
                "compaction_candidates_examined",
                candidates=len(findings),
                queued=len(report.queued),
                listed=listed,
                known=known,
            )
        return report

    def _look_at_everything_in_time(self, as_of: datetime) -> None:
        """Choose the start of the next round."""
        if self._since is None or self._began is None:
            self._began = as_of
        self._since = as_of if as_of - self._began < self.compactions.settings.listing_max_age else None
        self.compactions.forget_old_listings()

    def _looked_at_all(self, candidates: Sequence[Candidate]) -> list[CandidateOutcome]:
        inputs = self._inputs([candidate.entity for candidate in candidates])
        return in_parallel(
            lambda candidate: self._looked_at(candidate, inputs.get(candidate.entity)),
            candidates,
            self.compactions.threads,
            self.stopping,
        )

    def _inputs(self, entities: Sequence[Entity]) -> dict[Entity, CandidateFacts]:
        """Look up all entities at once; return nothing if that fails, so that the caller looks up each one alone."""
        try:
            return self.compactions.inputs(entities)
        except Exception as error:  # noqa: BLE001 - each of them is looked up again
            self._require_available(error)
            _log.debug("candidates_not_looked_up_at_once", error=str(error))
            return {}

    def _require_available(self, error: Exception) -> None:
        """Raise UnavailableError if the database or the whole catalog cannot be reached, not just one table."""
        if isinstance(error, UnavailableError):
            self.compactions.require_available()

    def _keep_listings(self) -> int:
        """Store the listings; return their number."""
        listings, self._listed = self._listed, []
        self.compactions.keep(listings)
        return len(listings)

    def _keep_measures(self) -> int:
        """Store the measures of this round, and look again where a compaction or a cleaning has changed them.

        Return their number.
        """
        if self.compactions.settings.metrics_on:
            stale = [entity for entity in self.compactions.stale_measures() if entity not in self._measured]
            inputs, before, self._unmeasured = self._inputs(stale), self._unmeasured, {}
            in_parallel(
                lambda entity: self._measure(entity, inputs.get(entity)), stale, self.compactions.threads, self.stopping
            )
            for entity, reason in sorted(self._unmeasured.items() - before.items()):
                _log.warning("deltas_not_measured", entity=str(entity), error=reason)
            self.compactions.note_measures([DeltasOf(*each) for each in sorted(self._measured.items())])
        self._measured = {}
        return self._keep_listings()

    def _measure(self, entity: Entity, inputs: CandidateFacts | None) -> None:
        try:
            inputs = inputs or self._alone(entity)
            if inputs.table is None or not inputs.table.partition_exists:
                self._measured[entity] = Deltas()
            else:
                self._state(inputs, inputs.table)
        except Exception as error:  # noqa: BLE001 - it is measured in the next round
            self._require_available(error)
            self._unmeasured[entity] = f"{type(error).__name__}: {error}"

    def _alone(self, entity: Entity) -> CandidateFacts:
        return self.compactions.inputs([entity])[entity]

    def _looked_at(self, candidate: Candidate, inputs: CandidateFacts | None) -> CandidateOutcome:
        entity = candidate.entity
        try:
            try:
                return self._examine(candidate, inputs or self._alone(entity))
            except NotEnoughHistoryError:  # A compaction may have been cleaned since the candidates were looked up.
                return self._examine(candidate, self._alone(entity))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one table, the others get their turn
            self._require_available(error)
            reason = f"{type(error).__name__}: {error}"
            if self.compactions.note_not_initiated(entity, self.initiator_id, reason):
                _log.warning("compaction_did_not_initiate", entity=str(entity), error=reason)
            return CandidateOutcome(entity, None, reason, failed=True)

    def _examine(self, candidate: Candidate, inputs: CandidateFacts) -> CandidateOutcome:
        entity, settings = candidate.entity, self.compactions.settings
        limits = EligibilityLimits(
            settings.failed_compacts_threshold, settings.failed_retry_time, settings.compact_insert_only
        )
        no = ineligible(entity, inputs.table, inputs.queued, inputs.history, candidate.aborts, limits, inputs.now)
        if no is not None or inputs.table is None:
            if no is not None and no.recorded:
                self.compactions.note_not_initiated(entity, self.initiator_id, no.reason)
            return CandidateOutcome(entity, None, no.reason if no else "", again=no is not None and no.again)
        is_open, thresholds = (
            bool(inputs.write_ids.open),
            Thresholds(settings.delta_num_threshold, settings.delta_pct_threshold),
        )
        not_due = ruled_out(inputs.table, candidate.aborts, inputs.known, thresholds)
        if not_due is not None:
            return CandidateOutcome(entity, None, _with_blocker(not_due.reason, inputs), again=is_open, known=True)
        state, write_ids = self._state(inputs, inputs.table), inputs.write_ids.for_compactor()
        kind, reason = verdict(
            inputs.table, candidate.aborts, inputs.queued, state, write_ids, thresholds, settings.aborted_txn_threshold
        )
        if kind is None:
            return CandidateOutcome(entity, None, _with_blocker(reason, inputs), again=is_open)
        gain = None if state is None else benefit(kind, measure(state), inputs.opens)
        return self._queue(entity, kind, reason, gain, inputs.table)

    def _state(self, inputs: CandidateFacts, table: Described) -> AcidState | None:
        """Return the directories; None for a whole partitioned table, whose partitions are read one by one."""
        if table.lacks_partition:
            return None
        location = table.location.rstrip("/")
        write_ids = inputs.write_ids.for_compactor()
        state = acid_state(
            self.files.listing(location), write_ids, inputs.txns, lambda path: self.files.read(f"{location}/{path}")
        )
        self._measured[table.entity] = deltas_of(state, self.compactions.settings.metrics_small_delta)
        listing = MeasuredListing(table.entity, table.location, inputs.now, write_ids.high_watermark, measure(state))
        self._listed.append(listing)
        return state

    def _queue(
        self, entity: Entity, kind: CompactionType, reason: str, gain: Benefit | None, table: Described
    ) -> CandidateOutcome:
        run_as = self.compactions.settings.run_as_user or table.owner
        pool = stored_pool(table.parameters.get(POOL) or table.database_parameters.get(POOL)) or None
        request_id = self.compactions.enqueue(
            NewRequest(
                entity,
                kind,
                run_as=run_as,
                initiator_id=self.initiator_id,
                initiator_version=self.version,
                pool=pool,
                head_start=head_start(gain),
            )
        )
        if request_id is None:
            return CandidateOutcome(entity, None, "somebody else requested a compaction at the same moment", again=True)
        return CandidateOutcome(entity, kind, reason, request_id)


def _with_blocker(reason: str, inputs: CandidateFacts) -> str:
    if not inputs.write_ids.open:
        return reason
    return f"{reason}; write id {inputs.write_ids.open[0]} is still open, and nothing from it on can be compacted"
