"""The Initiator: look at what was written since the last round and queue what is due.

Rule: one candidate's failure never stops the others; it becomes a "did not initiate" row with the message. A
candidate that was passed over for a reason that may go away without a new write comes up again in the next round.
"""

from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import NamedTuple

from metastore.acid.state import AcidState, acid_state
from metastore.compaction.initiating.rules import Limits, Thresholds, benefit, ineligible, measure, verdict
from metastore.compaction.initiating.service import Candidate, InitiatorService, Inputs, Revoked
from metastore.compaction.measuring.rules import Deltas, DeltasOf, deltas_of
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.compaction.queue.rules.turns import Benefit, head_start
from metastore.compaction.queue.store.entities import Described
from metastore.compaction.queue.store.requests import NewRequest
from metastore.errors import InvalidRequestError, MetastoreError, UnavailableError
from metastore.files import Files
from metastore.telemetry.logs import get_logger

POOL = "hive.compactor.worker.pool"
_log = get_logger(__name__)


class Finding(NamedTuple):
    """What became of a candidate. ``id``: the queued request; ``again``: look at it in the next round too."""

    entity: Entity
    type: CompactionType | None
    reason: str
    id: int | None = None
    again: bool = False


class InitiatorReport(NamedTuple):
    """What a round did."""

    findings: list[Finding]
    revoked: list[Revoked]

    @property
    def queued(self) -> list[Finding]:
        """What was queued."""
        return [finding for finding in self.findings if finding.id is not None]


@dataclass
class Initiator:
    """The loop's state is only a saving: a new Initiator looks at everything that was ever written and not cleaned."""

    compactions: InitiatorService
    files: Files
    initiator_id: str
    version: str
    stopping: Event = field(default_factory=Event)
    _since: datetime | None = None
    _again: set[Entity] = field(default_factory=set)
    _measured: dict[Entity, Deltas] = field(default_factory=dict)

    def tick(self) -> InitiatorReport:
        """Take back dead claims and queue what is due."""
        revoked = self.compactions.revoke_dead_claims()
        for claim, reason in revoked:
            _log.warning("compaction_claim_revoked", compaction_id=claim.id, worker_id=claim.worker_id, reason=reason)
        candidates = self.compactions.candidates(self._since, self._again)
        findings: list[Finding] = []
        for candidate in candidates.found:
            if self.stopping.is_set():
                return InitiatorReport(findings, revoked)  # the next round starts where this round did
            findings.append(self._looked_at(candidate))
        self._keep_measures()
        self._since = candidates.as_of
        self._again = {finding.entity for finding in findings if finding.again}
        for finding in findings:
            event = "compaction.queued" if finding.id is not None else "compaction.not_due"
            (_log.info if finding.id is not None else _log.debug)(
                event, entity=str(finding.entity), compaction_id=finding.id, type=finding.type, reason=finding.reason
            )
        return InitiatorReport(findings, revoked)

    def _keep_measures(self) -> None:
        """Keep what this round saw beside bases, and look again where a compaction or a cleaning has changed it."""
        if self.compactions.settings.metrics_on:
            for entity in self.compactions.stale_measures():
                if entity in self._measured or self.stopping.is_set():
                    continue
                try:
                    self._measure(entity)
                except (InvalidRequestError, OSError, ValueError) as error:
                    _log.warning("deltas_not_measured", entity=str(entity), error=str(error))
            self.compactions.note_measures([DeltasOf(*each) for each in sorted(self._measured.items())])
        self._measured = {}

    def _measure(self, entity: Entity) -> None:
        inputs = self.compactions.inputs(entity)
        if inputs.table is None or not inputs.table.partition_exists:
            self._measured[entity] = Deltas()
        else:
            self._state(inputs, inputs.table)

    def _looked_at(self, candidate: Candidate) -> Finding:
        try:
            return self._examine(candidate)
        except UnavailableError:
            raise
        except (MetastoreError, OSError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            _log.warning("compaction_did_not_initiate", entity=str(candidate.entity), error=reason)
            self.compactions.note_not_initiated(candidate.entity, self.initiator_id, reason)
            return Finding(candidate.entity, None, reason)

    def _examine(self, candidate: Candidate) -> Finding:
        entity, settings = candidate.entity, self.compactions.settings
        inputs = self.compactions.inputs(entity)
        limits = Limits(settings.failed_compacts_threshold, settings.failed_retry_time, settings.compact_insert_only)
        no = ineligible(entity, inputs.table, inputs.queued, inputs.history, candidate.aborts, limits, inputs.now)
        if no is not None or inputs.table is None:
            if no is not None and no.recorded:
                self.compactions.note_not_initiated(entity, self.initiator_id, no.reason)
            return Finding(entity, None, no.reason if no else "", again=no is not None and no.again)
        state, write_ids = self._state(inputs, inputs.table), inputs.write_ids.for_compactor()
        thresholds = Thresholds(settings.delta_num_threshold, settings.delta_pct_threshold)
        kind, reason = verdict(
            inputs.table, candidate.aborts, inputs.queued, state, write_ids, thresholds, settings.aborted_txn_threshold
        )
        if kind is None:
            return Finding(entity, None, _with_blocker(reason, inputs), again=bool(inputs.write_ids.open))
        gain = None if state is None else benefit(kind, measure(state), inputs.opens)
        return self._queue(entity, kind, reason, gain, inputs.table)

    def _state(self, inputs: Inputs, table: Described) -> AcidState | None:
        """The directories; None for a whole partitioned table, whose partitions are looked at one by one."""
        if table.lacks_partition:
            return None
        location = table.location.rstrip("/")
        state = acid_state(
            self.files.listing(location),
            inputs.write_ids.for_compactor(),
            inputs.txns,
            lambda path: self.files.read(f"{location}/{path}"),
        )
        self._measured[table.entity] = deltas_of(state, self.compactions.settings.metrics_small_delta)
        return state

    def _queue(
        self, entity: Entity, kind: CompactionType, reason: str, gain: Benefit | None, table: Described
    ) -> Finding:
        run_as = self.compactions.settings.run_as_user or table.owner
        pool = table.parameters.get(POOL) or table.database_parameters.get(POOL) or None
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
            return Finding(entity, None, "somebody else requested a compaction at the same moment", again=True)
        return Finding(entity, kind, reason, request_id)


def _with_blocker(reason: str, inputs: Inputs) -> str:
    if not inputs.write_ids.open:
        return reason
    return f"{reason}; write id {inputs.write_ids.open[0]} is still open, and nothing from it on can be compacted"
