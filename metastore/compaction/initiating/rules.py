"""Rules for due compactions: their kind, and the check that a Worker should still run them.

Rule: thresholds are strict (11 deltas exceed 10), a table's own ``compactorthreshold.`` properties win, and every "no"
has a reason that a person can act on. Source: Hive's Initiator, CompactorUtil.isEligibleForCompaction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol

from metastore.acid.snapshots import CompactorWriteIdList
from metastore.acid.state import AcidState
from metastore.compaction.inventory.rules import Measured, measure
from metastore.compaction.queue.rules.requests import (
    ACTIVE,
    Compaction,
    CompactionState,
    CompactionType,
    Entity,
    is_opted_out,
    is_stopped_by_failures,
    is_switched_on,
    put_off,
)
from metastore.compaction.queue.rules.turns import Benefit
from metastore.errors import InvalidRequestError

REPLICATION_PENDING = "hive.repl.first.inc.pending"
_OVERRIDE = "compactorthreshold.hive.compactor."


class Thresholds(NamedTuple):
    """The thresholds of compactions."""

    delta_num: int
    delta_pct: float

    def overridden_by(self, parameters: Mapping[str, str]) -> "Thresholds":
        """Return the thresholds of a table with these properties.

        Raises: InvalidRequestError if a property is not a number.
        """
        num = parameters.get(f"{_OVERRIDE}delta.num.threshold")
        pct = parameters.get(f"{_OVERRIDE}delta.pct.threshold")
        try:
            return Thresholds(
                self.delta_num if num is None else int(num), self.delta_pct if pct is None else float(pct)
            )
        except ValueError as error:
            raise InvalidRequestError(f"Table property {_OVERRIDE}* is not a number: {error}") from error


class Due(NamedTuple):
    """The kind of compaction that is due, or None, and the reason."""

    type: CompactionType | None
    reason: str


class Action(StrEnum):
    """The actions of a Worker on a claimed request."""

    RUN = "run"
    CLEAN_ONLY = "clean only"
    REFUSE = "refuse"


class Decision(NamedTuple):
    """A Worker's decision and its reason."""

    action: Action
    reason: str


class TableFacts(Protocol):
    """The catalog's facts about a table or partition."""

    @property
    def entity(self) -> Entity: ...  # noqa: D102
    @property
    def parameters(self) -> dict[str, str]: ...  # noqa: D102
    @property
    def database_parameters(self) -> dict[str, str]: ...  # noqa: D102
    @property
    def partition_exists(self) -> bool: ...  # noqa: D102
    @property
    def lacks_partition(self) -> bool: ...  # noqa: D102
    @property
    def is_transactional(self) -> bool: ...  # noqa: D102
    @property
    def is_insert_only(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True)
class Aborts:
    """The leftovers of aborted transactions, judged by the thresholds."""

    too_many: bool = False
    too_old: bool = False

    @classmethod
    def judged(
        cls, txns: int, oldest_started_at: datetime, now: datetime, max_txns: int, max_age: timedelta
    ) -> "Aborts":
        """Judge the count and the age of leftovers, both strictly; a negative age switches that check off."""
        return cls(txns > max_txns, max_age >= timedelta(0) and oldest_started_at + max_age < now)

    @property
    def count(self) -> bool:
        """True if the leftovers ask for a compaction or a cleaning."""
        return self.too_many or self.too_old

    def __or__(self, other: "Aborts") -> "Aborts":
        """Return the union of both."""
        return Aborts(self.too_many or other.too_many, self.too_old or other.too_old)


class AbortRule(NamedTuple):
    """A rule for aborted writes that alone ask for a compaction. ``cleaned``: True for those whose files are gone."""

    cleaned: bool
    max_txns: int
    max_age: timedelta

    def judged(self, writes: Iterable[tuple[Entity, int, datetime]], now: datetime) -> Iterator[tuple[Entity, Aborts]]:
        """Yield entities whose aborted writes ask for a compaction.

        ``writes``: (entity, number of transactions, start of the oldest).
        """
        for entity, txns, oldest in writes:
            aborts = Aborts.judged(txns, oldest, now, self.max_txns, self.max_age)
            if aborts.count:
                yield entity, aborts


_NEVER = timedelta(seconds=-1)
"""An age that switches the check off."""


def abort_rules(max_txns: int, max_age: timedelta, *, by_cleaner: bool) -> tuple[AbortRule, ...]:
    """Return the Initiator's rules. ``by_cleaner``: the Cleaner handles writes that have files.

    After the Cleaner has removed files their write ids are still remembered until a major compaction; no age asks for
    it.
    """
    remembered = AbortRule(cleaned=True, max_txns=max_txns, max_age=_NEVER)
    return (remembered,) if by_cleaner else (AbortRule(cleaned=False, max_txns=max_txns, max_age=max_age), remembered)


def merged(judged: Iterable[tuple[Entity, Aborts]]) -> dict[Entity, Aborts]:
    """Merge the results of several rules for each entity."""
    result: dict[Entity, Aborts] = {}
    for entity, aborts in judged:
        result[entity] = result.get(entity, Aborts()) | aborts
    return result


class Ineligible(NamedTuple):
    """The reason why a candidate is skipped.

    ``again``: look at it once more next time, though nothing new was written; ``recorded``: the history gets a "did not
    initiate" row.
    """

    reason: str
    again: bool = False
    recorded: bool = False


class EligibilityLimits(NamedTuple):
    """Settings that decide about eligibility."""

    failed_threshold: int
    failed_retry_time: timedelta
    compact_insert_only: bool


def due(measured: Measured, thresholds: Thresholds, *, insert_only: bool) -> Due:
    """Return the compaction that the sizes and counts ask for."""
    no_base = measured.base_size == 0 and measured.delta_size > 0
    if not no_base and measured.base_size > 0 and measured.delta_size / measured.base_size > thresholds.delta_pct:
        return Due(
            CompactionType.MAJOR,
            f"deltas are {measured.delta_size / measured.base_size:.2f} of the base, "
            f"more than {thresholds.delta_pct:g}",
        )
    if measured.delta_size == 0 and measured.leftover_base:
        return Due(CompactionType.MAJOR, "an older base is left over")
    if measured.deltas <= thresholds.delta_num:
        return Due(None, f"{measured.deltas} deltas, not more than {thresholds.delta_num}")
    many = f"{measured.deltas} deltas, more than {thresholds.delta_num}"
    if no_base:
        return Due(CompactionType.MAJOR, f"{many}, and there is no base")
    if not supports_minor(measured, insert_only=insert_only):
        return Due(CompactionType.MAJOR, f"{many}, and files without row ids rule out a minor compaction")
    return Due(CompactionType.MINOR, many)


def supports_minor(measured: Measured, *, insert_only: bool) -> bool:
    """Return False for files without row ids (originals, LOAD DATA), since a minor compaction copies events."""
    return insert_only or not (measured.has_originals or measured.has_raw_deltas)


def due_for_aborts(aborts: Aborts) -> Due | None:
    """Return True if a minor compaction suffices; files without row ids (originals, LOAD DATA) need a major one."""
    if aborts.too_many:
        return Due(CompactionType.MAJOR, "too many aborted transactions wrote to it")
    if aborts.too_old:
        return Due(CompactionType.MINOR, "an aborted transaction wrote to it long ago")
    return None


def ineligible(
    entity: Entity,
    table: TableFacts | None,
    queued: Iterable[Compaction],
    history: Sequence[Compaction],
    aborts: Aborts,
    limits: EligibilityLimits,
    now: datetime,
) -> Ineligible | None:
    """Return why the Initiator must not look at a candidate; None if it may.

    ``history``: the entity's, newest first.
    """
    if table is None:
        return Ineligible("the table does not exist (any more)")
    return (
        _switched_off(table, limits)
        or _busy(queued)
        or _stopped(history, limits, now)
        or _put_off(history, now)
        or _misses_partition(entity, table, aborts)
    )


def decide(
    kind: CompactionType, state: AcidState, write_ids: CompactorWriteIdList, max_aborts: int, *, insert_only: bool
) -> Decision:
    """Decide if a request is worth a job, given the directories and write ids of a compactor's snapshot.

    The Initiator calls this for a request that it is about to make, the Worker for a request that it has claimed:
    otherwise the Initiator would repeat a refused request in each round. ``max_aborts``: as for `Aborts`.
    """
    if kind is CompactionType.REBALANCE:
        return Decision(Action.RUN, "rebalancing was asked for")
    measured = measure(state)
    if kind is CompactionType.MINOR and not supports_minor(measured, insert_only=insert_only):
        return Decision(
            Action.REFUSE,
            "A minor compaction cannot read files without row ids (original files or LOAD DATA); request a major one.",
        )
    if _is_enough(kind, state):
        return Decision(Action.RUN, f"{measured.deltas} deltas")
    if kind is CompactionType.MAJOR and (aborts := _above_base(state, write_ids)) > max_aborts:
        return Decision(Action.RUN, f"a new base ends {aborts} aborted write ids, more than {max_aborts}")
    if state.obsolete or state.aborted:
        return Decision(Action.CLEAN_ONLY, "nothing to compact, but directories to remove")
    return Decision(
        Action.REFUSE,
        f"None of the compaction thresholds met, compaction request for {kind.value} is "
        f"refused: {measured.deltas} deltas, {'a' if state.base else 'no'} base.",
    )


def examined(
    for_aborts: Due | None,
    state: AcidState,
    write_ids: CompactorWriteIdList,
    thresholds: Thresholds,
    max_aborts: int,
    *,
    insert_only: bool,
) -> Due:
    """Return the compaction that is due, unless a Worker would refuse it.

    ``for_aborts``: due whatever the directories are.
    """
    verdict = for_aborts or due(measure(state), thresholds, insert_only=insert_only)
    if verdict.type is None:
        return verdict
    decision = decide(verdict.type, state, write_ids, max_aborts, insert_only=insert_only)
    is_refused = decision.action is Action.REFUSE
    return Due(None, f"{verdict.reason}, but: {decision.reason}") if is_refused else verdict


def ruled_out(table: TableFacts, aborts: Aborts, known: Measured | None, defaults: Thresholds) -> Due | None:
    """Return why nothing is due, by the facts that are known; None: only a listing can tell."""
    if known is None or aborts.count:
        return None
    due_now = due(known, defaults.overridden_by(table.parameters), insert_only=table.is_insert_only)
    return due_now if due_now.type is None else None


def verdict(
    table: TableFacts,
    aborts: Aborts,
    queued: Iterable[Compaction],
    state: AcidState | None,
    write_ids: CompactorWriteIdList,
    defaults: Thresholds,
    max_aborts: int,
) -> Due:
    """Return the compaction that the Initiator queues for a table or partition that is not `ineligible`.

    ``state``: None for a whole partitioned table, of which only aborted writes without a partition count.
    """
    due_now = due_for_aborts(aborts)
    if state is not None:
        thresholds = defaults.overridden_by(table.parameters)
        due_now = examined(due_now, state, write_ids, thresholds, max_aborts, insert_only=table.is_insert_only)
    if due_now is None or due_now.type is None:
        return due_now or Due(None, "no aborted transaction wrote to it without naming a partition")
    for request in queued:
        if request.has_files_to_clean and request.highest_write_id == write_ids.high_watermark:
            doing = f"compaction {request.id} is {request.state.display} and nothing was written since"
            return Due(None, f"{due_now.reason}, but: {doing}")
    return due_now


def benefit(kind: CompactionType, measured: Measured, opens: float) -> Benefit:
    """Return the benefit of a compaction of these directories. ``opens``: see `Benefit`."""
    if kind is CompactionType.MINOR:
        results = (measured.deltas > measured.delete_deltas) + (measured.delete_deltas > 0)
        return Benefit(max(0, measured.deltas - results), measured.delta_size, opens)
    return Benefit(measured.deltas, measured.base_size + measured.delta_size, opens)


def _is_enough(kind: CompactionType, state: AcidState) -> bool:
    if kind is CompactionType.MAJOR:
        return bool(state.originals) or len(state.deltas) + (state.base is not None) > 1
    pair_of_kinds = len(state.insert_deltas) == 1 and len(state.delete_deltas) == 1
    return len(state.deltas) > 1 and not pair_of_kinds


def _above_base(state: AcidState, write_ids: CompactorWriteIdList) -> int:
    """Count the aborted write ids that a new base would cover and the present base does not."""
    covered = state.base.name.write_id if state.base else 0
    return sum(write_id > covered for write_id in write_ids.aborted)


def _switched_off(table: TableFacts, limits: EligibilityLimits) -> Ineligible | None:
    if any(
        is_switched_on(parameters, REPLICATION_PENDING) for parameters in (table.database_parameters, table.parameters)
    ):
        return Ineligible("its first incremental replication is pending")
    if is_opted_out(table.database_parameters, table.parameters):
        return Ineligible("NO_AUTO_COMPACTION is set")
    if not table.is_transactional:
        return Ineligible("the table is not transactional")
    if table.is_insert_only and not limits.compact_insert_only:
        return Ineligible("compaction of insert-only tables is switched off")
    return None


def _busy(queued: Iterable[Compaction]) -> Ineligible | None:
    active = next((request for request in queued if request.state in ACTIVE), None)
    return None if active is None else Ineligible(f"compaction {active.id} is {active.state.display}", again=True)


def _stopped(history: Sequence[Compaction], limits: EligibilityLimits, now: datetime) -> Ineligible | None:
    if not is_stopped_by_failures(history, limits.failed_threshold, limits.failed_retry_time, now):
        return None
    said_already = bool(history) and history[0].state is CompactionState.DID_NOT_INITIATE
    return Ineligible(
        f"the last {limits.failed_threshold} compactions failed; the next automatic one comes after "
        f"{limits.failed_retry_time}, or request one",
        again=True,
        recorded=not said_already,
    )


def _put_off(history: Sequence[Compaction], now: datetime) -> Ineligible | None:
    pause = put_off(history)
    if pause is None or pause.until <= now:
        return None
    return Ineligible(
        f"its last compaction failed for a cause outside of the table ({pause.cause}); the next automatic one comes "
        f"after {pause.until:%Y-%m-%d %H:%M} UTC, or request one",
        again=True,
    )


def _misses_partition(entity: Entity, table: TableFacts, aborts: Aborts) -> Ineligible | None:
    if table.lacks_partition and not aborts.too_old:
        return Ineligible("the table is partitioned, and its partitions are looked at one by one")
    if entity.partition and not table.partition_exists:
        return Ineligible("the partition does not exist (any more)")
    return None
