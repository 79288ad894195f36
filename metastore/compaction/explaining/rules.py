"""Explanations in words: the inputs of a compaction, the thresholds that were missed, and the waits.

Rule: this decides nothing that the Initiator, the Worker or the Cleaner decide; it only puts their rules into words.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import AcidState, DeltaDirectory, Listed
from metastore.compaction.cleaning.rules import OpenTxn, may_read, may_read_old_files
from metastore.compaction.initiating.rules import Due, Ineligible, Thresholds
from metastore.compaction.inventory.rules import Measured
from metastore.compaction.queue.rules.requests import Compaction, CompactionState, CompactionType, Entity


class Input(NamedTuple):
    """A directory that readers read now and a compaction would replace."""

    path: str
    kind: str
    """``base``, ``delta``, ``delete delta`` or ``original files``."""
    files: tuple[str, ...]
    """The paths below the location."""
    size: int


class Gauge(NamedTuple):
    """A threshold and the measured value; strict: a value equal to the limit does not exceed it."""

    name: str
    measured: float
    limit: float

    @property
    def is_exceeded(self) -> bool:
        """True if the value asks for a compaction."""
        return self.measured > self.limit


class Holder(NamedTuple):
    """An open transaction for which a compaction or a cleaning waits."""

    txn: OpenTxn
    agent_info: str
    started_at: datetime
    last_heartbeat_at: datetime
    write_id: int | None = None
    """Its write id in the table, if it writes to it."""

    @property
    def ends_with(self) -> str:
        """The command that ends the transaction."""
        return f"metastore txn abort {self.txn.id}"


class Reason(NamedTuple):
    """The reason why an action has not happened, its beginning, its blocker, and the remedy."""

    text: str
    since: datetime | None = None
    holders: tuple[Holder, ...] = ()
    ends_with: str = ""


class Plan(NamedTuple):
    """The plan of a compaction. ``type``: the kind that is due by the thresholds, None: none."""

    type: CompactionType | None
    reason: str
    inputs: tuple[Input, ...] = ()
    gauges: tuple[Gauge, ...] = ()

    @property
    def reads(self) -> int:
        """The bytes that the due compaction would read; if none is due, the bytes of a major one."""
        return sum(each.size for each in self.inputs if self.type is not CompactionType.MINOR or _is_delta(each))


def plan(verdict: Due, state: AcidState, measured: Measured, thresholds: Thresholds) -> Plan:
    """Return the plan that follows from the Initiator's rules."""
    inputs = [Input(state.base.path, "base", *_extent(state.base.files))] if state.base else []
    if state.originals:
        inputs.append(Input(".", "original files", *_extent(state.originals)))
    inputs += [Input(delta.path, _kind(delta), *_extent(delta.files)) for delta in state.deltas]
    ratio = measured.delta_size / measured.base_size if measured.base_size else 0.0
    gauges = (
        Gauge("hive.compactor.delta.num.threshold", measured.deltas, thresholds.delta_num),
        Gauge("hive.compactor.delta.pct.threshold", ratio, thresholds.delta_pct),
    )
    return Plan(verdict.type, verdict.reason, tuple(inputs), gauges)


def why_not_compacted(
    entity: Entity,
    no: Ineligible | None,
    planned: Plan,
    queued: Sequence[Compaction],
    writers: Sequence[Holder],
    check_interval: timedelta,
    full: Mapping[str, int],
) -> Reason:
    """Return the reason why an entity is not compacted. ``no``: why the Initiator skips it; ``writers``: by write id.

    ``full``: the limits of the pools that have reached them.
    """
    wanted = _request(entity, planned.type) if planned.type else ""
    active = next((request for request in queued if request.state in _ACTIVE_WORDS), None)
    if active is not None:
        return _active(active, full)
    if no is not None:
        return Reason(f"The Initiator passes it over: {no.reason}.", ends_with=wanted)
    if planned.type is not None:
        seconds = int(check_interval.total_seconds())
        return Reason(
            f"It is due for a {planned.type.value} compaction ({planned.reason}): the Initiator queues it in its next "
            f"round, within {seconds} s.",
            ends_with=wanted,
        )
    first = writers[:1]
    blocked = "".join(
        f" Write id {writer.write_id} is open, and nothing from it on can be compacted." for writer in first
    )
    return Reason(
        f"Nothing is due: {planned.reason}.{blocked}",
        first[0].started_at if first else None,
        tuple(first),
        first[0].ends_with if first else "",
    )


_ACTIVE_WORDS = {CompactionState.INITIATED: "waits for a Worker", CompactionState.WORKING: "is being done"}


def _active(request: Compaction, full: Mapping[str, int]) -> Reason:
    what = f"Compaction {request.id} ({request.type.value})"
    if request.state is CompactionState.WORKING:
        job = f", job {request.hadoop_job_id}" if request.hadoop_job_id else ""
        how_far = f": {request.meta_info}" if request.meta_info else ""
        return Reason(
            f"{what} is being done by {request.worker_id or 'an unknown Worker'}{job}{how_far}.",
            request.started_at,
            ends_with=f"metastore txn abort {request.txn_id}" if request.txn_id else "",
        )
    pool, limit = request.pool or "default", full.get(request.pool or "")
    why = f": {request.error_message}" if request.error_message else ""
    if limit is not None:
        why = f", which is full: metastore.compactor.pool.limits allows {limit} at a time{why}"
    return Reason(
        f"{what} waits for a Worker of the pool {pool}{why}.",
        request.enqueued_at,
        ends_with=f"metastore compaction abort {request.id}",
    )


def why_not_cleaned(request: Compaction, said: str, readers: Iterable[Holder], *, per_table: bool) -> Reason:
    """Return the reason why a finished compaction is not cleaned.

    ``said``: the Cleaner's rule; "": it may be cleaned.
    """
    since = request.committed_at or request.enqueued_at
    blockers = (
        tuple(reader for reader in readers if may_read_old_files(reader.txn, request, per_table=per_table))
        if request.next_txn_id is not None
        else ()
    )
    if not said:
        return Reason(f"Compaction {request.id} is cleaned in the Cleaner's next round.", since)
    return Reason(
        f"The old files of compaction {request.id} are not removed: {said}.",
        since,
        blockers,
        blockers[0].ends_with if blockers else "",
    )


def writers_of(holders: Iterable[Holder], write_ids: ValidWriteIdList) -> list[Holder]:
    """Return the holders whose write ids are open, the lowest first."""
    open_ids = set(write_ids.open)
    return sorted(
        (holder for holder in holders if holder.write_id in open_ids), key=lambda holder: holder.write_id or 0
    )


def delays_of_cleaning(holders: Iterable[Holder], *, per_table: bool) -> list[Holder]:
    """Return transactions that would delay the cleaning of a compaction that commits now, oldest first."""
    return [holder for holder in holders if may_read(holder.txn, per_table=per_table)]


def estimate(earlier: Sequence[Compaction], kind: CompactionType, entity: Entity) -> tuple[timedelta | None, str]:
    """Return the expected duration and its source: the newest five compactions of this entity, else of any entity."""
    done = [
        (request, request.committed_at - request.started_at)
        for request in earlier
        if request.type is kind and request.started_at is not None and request.committed_at is not None
    ]
    own = [length for request, length in done if request.entity == entity]
    lengths = sorted((own or [length for _, length in done])[:5])
    if not lengths:
        return None, f"no {kind.value} compaction has been done yet"
    whose = "of it" if own else "of other tables"
    return lengths[len(lengths) // 2], f"median of the last {len(lengths)} {kind.value} compactions {whose}"


def _request(entity: Entity, kind: CompactionType) -> str:
    partition = f" --partition {entity.partition}" if entity.partition else ""
    return f"metastore compaction request {entity.table}{partition} --type {kind.value}"


def _is_delta(planned: Input) -> bool:
    return planned.kind in {"delta", "delete delta"}


def _kind(delta: DeltaDirectory) -> str:
    return "delete delta" if delta.is_delete else "delta"


def _extent(files: Iterable[Listed]) -> tuple[tuple[str, ...], int]:
    there = list(files)
    return tuple(file.path for file in there), sum(file.size for file in there)
