"""Whether a table or partition is due for compaction, which kind, and whether a Worker should still run it.

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
    """When there is enough to compact."""

    delta_num: int
    delta_pct: float

    def overridden_by(self, parameters: Mapping[str, str]) -> "Thresholds":
        """The thresholds of a table with these properties.

        Raises: InvalidRequestError when a property is not a number.
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
    """The kind of compaction that is due, or None, and why."""

    type: CompactionType | None
    reason: str


class Action(StrEnum):
    """What a Worker does with a claimed request."""

    RUN = "run"
    CLEAN_ONLY = "clean only"
    REFUSE = "refuse"


class Decision(NamedTuple):
    """A Worker's decision and why."""

    action: Action
    reason: str


class TableFacts(Protocol):
    """What the catalog says about a table or partition."""

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
    """What aborted transactions left, judged by the thresholds."""

    too_many: bool = False
    too_old: bool = False

    @classmethod
    def judged(
        cls, txns: int, oldest_started_at: datetime, now: datetime, max_txns: int, max_age: timedelta
    ) -> "Aborts":
        """Both strict; a negative age switches that check off."""
        return cls(txns > max_txns, max_age >= timedelta(0) and oldest_started_at + max_age < now)

    @property
    def count(self) -> bool:
        """Whether there is anything to do about them."""
        return self.too_many or self.too_old

    def __or__(self, other: "Aborts") -> "Aborts":
        """Both together."""
        return Aborts(self.too_many or other.too_many, self.too_old or other.too_old)


class AbortRule(NamedTuple):
    """From when on aborted writes alone ask for a compaction. ``cleaned``: those whose files are gone, or there."""

    cleaned: bool
    max_txns: int
    max_age: timedelta

    def judged(self, writes: Iterable[tuple[Entity, int, datetime]], now: datetime) -> Iterator[tuple[Entity, Aborts]]:
        """Those of (entity, transactions, start of the oldest) that ask for one."""
        for entity, txns, oldest in writes:
            aborts = Aborts.judged(txns, oldest, now, self.max_txns, self.max_age)
            if aborts.count:
                yield entity, aborts


_NEVER = timedelta(seconds=-1)
"""As an age: switched off."""


def abort_rules(max_txns: int, max_age: timedelta, *, by_cleaner: bool) -> tuple[AbortRule, ...]:
    """What the Initiator goes by. ``by_cleaner``: what has files is the Cleaner's business.

    What the Cleaner has removed the files of is still remembered by its write ids, and a major compaction ends that; no
    age asks for it.
    """
    remembered = AbortRule(cleaned=True, max_txns=max_txns, max_age=_NEVER)
    return (remembered,) if by_cleaner else (AbortRule(cleaned=False, max_txns=max_txns, max_age=max_age), remembered)


def merged(judged: Iterable[tuple[Entity, Aborts]]) -> dict[Entity, Aborts]:
    """What several rules say of each entity."""
    result: dict[Entity, Aborts] = {}
    for entity, aborts in judged:
        result[entity] = result.get(entity, Aborts()) | aborts
    return result


class Ineligible(NamedTuple):
    """Why a candidate is passed over. ``again``: look at it once more next time, though nothing new was written;
    ``recorded``: the history gets a "did not initiate" row.
    """  # noqa: D205

    reason: str
    again: bool = False
    recorded: bool = False


class EligibilityLimits(NamedTuple):
    """Settings that decide about eligibility."""

    failed_threshold: int
    failed_retry_time: timedelta
    compact_insert_only: bool


def due(measured: Measured, thresholds: Thresholds, *, insert_only: bool) -> Due:
    """Which compaction the sizes and counts ask for."""
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
    """A minor compaction copies events, so files without row ids (originals, LOAD DATA) need a major compaction."""
    return insert_only or not (measured.has_originals or measured.has_raw_deltas)


def due_for_aborts(aborts: Aborts) -> Due | None:
    """What aborted transactions ask for where the Initiator, not the Cleaner, deals with them."""
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
    """Why the Initiator must not look at a candidate; None when it may. ``history``: the entity's, newest first."""
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
    """Whether a request is worth a job, given the directories and write ids of a compactor's snapshot.

    The Initiator asks this of a request that it is about to make, the Worker of a request that it has claimed: what
    the second refuses, the first would make again in each of its rounds. ``max_aborts``: as for `Aborts`.
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
    """What is due, unless a Worker would refuse it. ``for_aborts``: what is due whatever the directories say."""
    verdict = for_aborts or due(measure(state), thresholds, insert_only=insert_only)
    if verdict.type is None:
        return verdict
    decision = decide(verdict.type, state, write_ids, max_aborts, insert_only=insert_only)
    is_refused = decision.action is Action.REFUSE
    return Due(None, f"{verdict.reason}, but: {decision.reason}") if is_refused else verdict


def ruled_out(table: TableFacts, aborts: Aborts, known: Measured | None, defaults: Thresholds) -> Due | None:
    """Why nothing is due, by what is known to be there; None: only a listing can tell."""
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
    """What the Initiator queues for a table or partition that is not `ineligible`.

    ``state``: None for a whole partitioned table, of which only aborted writes without a partition are to be looked at.
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
    """What a compaction of these directories is good for. ``opens``: see `Benefit`."""
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
    """How many aborted write ids a new base would cover that the present base does not."""
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
