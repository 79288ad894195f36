"""Opening, keeping alive, aborting and listing transactions: one RPC's work each.

Calls that many clients make at once take a list and answer in its order; an error is the answer of its own request
only. One batch is one PostgreSQL transaction, however many callers wait for it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeAlias

from metastore.config import TxnSettings
from metastore.db.engine import Database
from metastore.db.pieces import Pieces
from metastore.errors import InvalidRequestError, MetaError, NoSuchLockError, NoSuchTxnError, TxnAbortedError
from metastore.ids import TableName
from metastore.partition_names import canonical
from metastore.telemetry.txns import TxnStats
from metastore.txns.core import store
from metastore.txns.core.rules import (
    HEARTBEAT_RANGE_LIMIT,
    LARGEST_ID,
    REASONS,
    AbortCode,
    Component,
    Operation,
    Snapshot,
    TxnState,
    TxnType,
    accepts_more,
    already_aborted,
    already_committed,
    no_such_txn,
    required_open,
)
from metastore.txns.core.store import AbortedTxn, Opening
from metastore.txns.replication import store as repl_store

LOSABLE = frozenset({TxnType.DEFAULT, TxnType.READ_ONLY})
"""Types that may be opened without waiting for the disk: whatever they go on to write is on disk later than they are.
A compaction names its directories after its transaction before anything else is written."""


class OpenRequest(NamedTuple):
    """A client's request of open_txns. ``sources``: transactions of the source warehouse, for replication."""

    num_txns: int
    user: str
    host: str
    agent_info: str = "Unknown"
    txn_type: TxnType = TxnType.DEFAULT
    repl_policy: str | None = None
    sources: tuple[int, ...] = ()

    @property
    def replays(self) -> bool:
        """True if the request repeats an open of the source warehouse.

        3.1 shows this by the sources, 4.x by the type.
        """
        return self.txn_type is TxnType.REPL_CREATED or (bool(self.sources) and self.repl_policy is not None)


class AbortRequest(NamedTuple):
    """A client's request of abort_txn and, for each transaction, of abort_txns. ``who``: the caller, for the record."""

    txn_id: int
    code: AbortCode = AbortCode.NONE
    who: str = "an unknown client"
    repl_policy: str | None = None
    replays: bool = False


class Heartbeat(NamedTuple):
    """A heartbeat for a transaction and a lock request; 0 stands for neither."""

    txn_id: int = 0
    lock_id: int = 0


HeartbeatAnswer: TypeAlias = NoSuchTxnError | TxnAbortedError | NoSuchLockError | None


class RangeHeartbeat(NamedTuple):
    """The transactions of a range that could not be kept alive."""

    aborted: frozenset[int]
    nosuch: frozenset[int]


class DynamicPartitions(NamedTuple):
    """The partitions that a statement with dynamic partitions has written."""

    txn_id: int
    name: TableName
    partitions: tuple[str, ...]
    operation: Operation = Operation.UPDATE
    write_id: int | None = None


@dataclass
class OpenTxnGauge:
    """This process's count of open transactions, renewed when it is older than the interval.

    This cache decides only when to refuse: overshoot is accepted, as in Hive.
    """

    count: int = 0
    counted_at: datetime | None = None
    refusing: bool = False


@dataclass(frozen=True)
class TxnService:
    """The life of transactions, except their commit."""

    db: Database
    settings: TxnSettings
    gauge: OpenTxnGauge = field(default_factory=OpenTxnGauge)
    stats: TxnStats = field(default_factory=TxnStats)

    def open_txns(self, requests: Sequence[OpenRequest]) -> list[Sequence[int] | MetaError]:
        """Open transactions; each caller gets its consecutive ids.

        Serialises on: the transaction counter. Retry: not idempotent, an orphan expires (replication: idempotent).
        """
        answers: list[Sequence[int] | MetaError] = []
        plain: list[tuple[int, Opening]] = []
        for place, request in enumerate(requests):
            refusal = self._refusal(request)
            if refusal is not None:
                answers.append(refusal)
            elif request.replays:
                answers.append(self._open_replayed(request))
            elif request.repl_policy is not None:
                answers.append(self._open_silently(request))
            else:
                size = min(request.num_txns, self.settings.max_open_batch)
                plain.append((place, Opening(size, request.user, request.host, request.agent_info, request.txn_type)))
                answers.append(range(0))
        if plain:
            openings = [opening for _, opening in plain]
            durable = any(opening.txn_type not in LOSABLE for opening in openings)
            first_id, now = store.insert_txns(self.db, openings, durable=durable)
            for place, opening in plain:
                answers[place] = range(first_id, first_id + opening.size)
                first_id += opening.size
            self._recount(now)
        return answers

    def abort_txn(self, requests: Sequence[AbortRequest]) -> list[NoSuchTxnError | None]:
        """Abort transactions: their locks are released at once, their writes stay listed until they are cleaned up.

        Serialises on: the transactions' rows. Retry: idempotent.
        Answers: NoSuchTxnError for a transaction that is committed or unknown.
        """
        sources = repl_store.select_targets(self.db, requests) if any(request.replays for request in requests) else {}
        targets = [
            sources.get((request.repl_policy, request.txn_id)) if request.replays else request.txn_id
            for request in requests
        ]
        aborts = {
            txn_id: (txn_id, request.code, reason(request))
            for txn_id, request in zip(targets, requests, strict=True)
            if txn_id is not None
        }
        results = self._abort(
            list(aborts.values()),
            replayed={
                txn_id
                for txn_id, request in zip(targets, requests, strict=True)
                if request.replays and txn_id is not None
            },
            silent={request.txn_id for request in requests if request.repl_policy is not None and not request.replays},
        )
        gone = [txn_id for txn_id in aborts if txn_id not in results]
        completed = store.has_completed_components(self.db, gone) if gone else set()
        return [
            None if txn_id is None else not_abortable(txn_id, results.get(txn_id), known=txn_id in completed)
            for txn_id in targets
        ]

    def abort_txns(self, requests: Sequence[Sequence[AbortRequest]]) -> list[None]:
        """Abort the open transactions among these, and ignore ended ones without an error. Retry: idempotent."""
        wanted = {abort.txn_id: (abort.txn_id, abort.code, reason(abort)) for request in requests for abort in request}
        # The abort must be durable: its owner may not know of it, and could commit if a crash undid the abort.
        self._abort(list(wanted.values()), replayed=set(), silent=set(), durable=True)
        return [None] * len(requests)

    def heartbeat(self, requests: Sequence[Heartbeat]) -> list[HeartbeatAnswer]:
        """Keep transactions and lock requests alive. Retry: idempotent.

        Answers: TxnAbortedError; NoSuchTxnError for committed and unknown transactions; NoSuchLockError.
        """
        txns = {request.txn_id for request in requests} - {0}
        locks = {request.lock_id for request in requests} - {0}
        if not txns and not locks:
            return [None] * len(requests)
        # A transaction that loses its heartbeat in a crash expires and cannot commit. The holder of a lock without a
        # transaction continues for a whole time-out, so that heartbeat must be on disk.
        durable = any(request.lock_id and not request.txn_id for request in requests)
        beaten, held = store.update_heartbeats(self.db, txns, locks, durable=durable)
        lost = self._states(txns - beaten)
        return [self._heartbeat_answer(request, beaten, held, lost) for request in requests]

    def heartbeat_txn_range(self, requests: Sequence[tuple[int, int]]) -> list[RangeHeartbeat | InvalidRequestError]:
        """Keep open transactions from min to max (both included) alive; return those that are not open.

        Retry: idempotent.
        """
        ranges = [range(low, high + 1) if high - low < HEARTBEAT_RANGE_LIMIT else None for low, high in requests]
        txns = {txn_id for ids in ranges if ids is not None for txn_id in ids}
        beaten = store.update_heartbeats(self.db, txns, ())[0] if txns else set()
        lost = self._states(txns - beaten)
        return [
            InvalidRequestError(
                f"A heartbeat for {high - low + 1} transactions is more than the "
                f"{HEARTBEAT_RANGE_LIMIT} that one call may ask for: split the range."
            )
            if ids is None
            else range_heartbeat(ids, beaten, lost)
            for ids, (low, high) in zip(ranges, requests, strict=True)
        ]

    def get_replayed_txns_for_policy(self, policy: str) -> dict[int, int]:
        """Return the transactions of a replication policy that are open here, by their ids at its source."""
        return dict(repl_store.select_targets_of(self.db, policy))

    def get_open_txns(self, hidden: Iterable[TxnType] = (TxnType.READ_ONLY,)) -> Snapshot:
        """Return open and aborted transactions as of one instant; ``hidden`` types count for the minimum only."""
        return store.select_snapshot(self.db, list(hidden))

    def get_open_txns_info(self, states: Mapping[TxnState, int]) -> tuple[Pieces[bytes], int]:
        """Return open and aborted transactions with their owners, as bytes for clients, and the mark.

        ``states``: the numbers of the stored states in the protocol.
        """
        found, mark = store.info_list(states).read(self.db)
        return found, int.from_bytes(mark)

    def add_dynamic_partitions(
        self, requests: Sequence[DynamicPartitions]
    ) -> list[NoSuchTxnError | TxnAbortedError | None]:
        """Record the partitions that statements wrote, in place of "somewhere in the table".

        Answers: TxnAbortedError, NoSuchTxnError. Retry: idempotent.
        """
        refusals: dict[int, NoSuchTxnError | TxnAbortedError] = {}
        while written := [request for request in requests if request.txn_id not in refusals]:
            if store.name_partitions(
                self.db,
                {(component.txn_id, component.name) for component in written},
                [
                    Component(
                        component.txn_id, component.name, canonical(partition), component.operation, component.write_id
                    )
                    for component in written
                    for partition in dict.fromkeys(component.partitions)
                ],
            ):
                break
            states = self._states({component.txn_id for component in written})
            refusals |= {
                component.txn_id: refusal
                for component in written
                if (refusal := required_open(component.txn_id, states.get(component.txn_id))) is not None
            }
        return [refusals.get(request.txn_id) for request in requests]

    def get_latest_txnid_in_conflict(self, txn_id: int) -> int:
        """Return the largest transaction whose committed update the snapshot of this transaction may miss; 0 if none.

        Exact only for a caller that holds an exclusive lock on what it is about to update.
        """
        return store.select_latest_conflict(self.db, txn_id)

    def seed_txn_id(self, txn_id: int) -> None:
        """Let the next transaction have this id; skipped ids count as finished.

        Serialises on: the transaction counter. Raises: InvalidRequestError when the id is allocated already.
        """
        if txn_id > LARGEST_ID:
            raise InvalidRequestError(f"Invalid txnId seed {txn_id}, the largest is {LARGEST_ID}")
        with self.db.begin() as pg:
            mark = store.update_counter(pg, txn_id)
        if mark is not None:
            raise InvalidRequestError(f"Invalid txnId seed {txn_id}, the highWaterMark is {mark}")

    def still_open(self, txn_ids: Collection[int]) -> set[int]:
        """Return those of the transactions that are open."""
        return {txn_id for txn_id, state in self._states(set(txn_ids)).items() if state is TxnState.OPEN}

    def count_open_txns(self) -> int:
        """Count the open transactions anew, for the limit that open_txns keeps."""
        self.gauge.count, self.gauge.counted_at = store.count_open(self.db)
        return self.gauge.count

    def _refusal(self, request: OpenRequest) -> MetaError | None:
        if request.replays:
            if not request.repl_policy or not request.sources:
                return InvalidRequestError("A replicated transaction needs replPolicy and replSrcTxnIds")
            if len(set(request.sources)) < len(request.sources):
                return InvalidRequestError("A transaction of the source warehouse is named twice in replSrcTxnIds")
        elif request.num_txns <= 0:
            return InvalidRequestError(f"Invalid input for number of txns: {request.num_txns}")
        if self.gauge.refusing:
            self.count_open_txns()
        self.gauge.refusing = not accepts_more(
            self.gauge.count, self.settings.max_open_txns, refusing=self.gauge.refusing
        )
        if self.gauge.refusing:
            return MetaError("Maximum allowed number of open transactions has been reached. See hive.max.open.txns.")
        return None

    def _recount(self, now: datetime) -> None:
        """Count open transactions if no loop of this process does."""
        counted_at = self.gauge.counted_at
        if counted_at is None or now - counted_at >= 3 * self.settings.count_open_txns_interval:
            self.count_open_txns()

    def _open_replayed(self, request: OpenRequest) -> Sequence[int]:
        with self.db.begin() as pg:
            targets = repl_store.lock_targets(pg, request.repl_policy or "", request.sources)
            if targets:
                return targets
            first_id = store.insert_txns_within(
                pg, Opening(len(request.sources), request.user, request.host, request.agent_info, TxnType.REPL_CREATED)
            )
            repl_store.insert_targets(pg, request.repl_policy or "", request.sources, first_id)
        return range(first_id, first_id + len(request.sources))

    def _open_silently(self, request: OpenRequest) -> Sequence[int]:
        """Open transactions for replication itself, without an event."""
        size = min(request.num_txns, self.settings.max_open_batch)
        with self.db.begin() as pg:
            store.silence(pg)
            first_id = store.insert_txns_within(
                pg, Opening(size, request.user, request.host, request.agent_info, request.txn_type)
            )
        return range(first_id, first_id + size)

    def _abort_silently(self, aborts: list[tuple[int, AbortCode, str]]) -> list[AbortedTxn]:
        with self.db.begin() as pg:
            store.silence(pg)
            return store.abort(pg, aborts)

    def _abort(
        self, aborts: list[tuple[int, AbortCode, str]], replayed: set[int], silent: set[int], *, durable: bool = False
    ) -> dict[int, TxnState]:
        """Abort transactions, and flag the databases whose replication this breaks; return the states before."""
        effective = [(txn_id, code, reason) for txn_id, code, reason in aborts if txn_id not in silent]
        rows = store.abort_at_once(self.db, effective, durable=durable) if effective else []
        if len(effective) < len(aborts):
            rows += self._abort_silently([(txn_id, code, why) for txn_id, code, why in aborts if txn_id in silent])
        self.stats.aborted.labels("asked").inc(sum(row.state is TxnState.OPEN for row in rows))
        broken = {row.policy for row in rows if row.policy is not None and row.txn_id not in replayed}
        if broken:
            with self.db.begin() as pg:
                repl_store.flag_incompatible(pg, broken)
        return {row.txn_id: row.state for row in rows}

    def _states(self, txn_ids: set[int]) -> dict[int, TxnState]:
        return store.select_states(self.db, txn_ids) if txn_ids else {}

    @staticmethod
    def _heartbeat_answer(
        heartbeat: Heartbeat, beaten: set[int], held: set[int], lost: dict[int, TxnState]
    ) -> HeartbeatAnswer:
        if heartbeat.txn_id and heartbeat.txn_id not in beaten:
            state = lost.get(heartbeat.txn_id)
            if state is TxnState.ABORTED:
                return already_aborted(heartbeat.txn_id)
            return (
                NoSuchTxnError(f"No such txn: {heartbeat.txn_id}", heartbeat.txn_id)
                if state
                else no_such_txn(heartbeat.txn_id)
            )
        if heartbeat.lock_id and heartbeat.lock_id not in held:
            return NoSuchLockError(f"No such lock: {heartbeat.lock_id}")
        return None


def range_heartbeat(txn_ids: range, beaten: set[int], lost: dict[int, TxnState]) -> RangeHeartbeat:
    """Sort the transactions that could not be kept alive into the answer."""
    missed = [txn_id for txn_id in txn_ids if txn_id not in beaten]
    aborted = frozenset(txn_id for txn_id in missed if lost.get(txn_id) is TxnState.ABORTED)
    return RangeHeartbeat(aborted, frozenset(missed) - aborted)


def not_abortable(txn_id: int, state: TxnState | None, *, known: bool) -> NoSuchTxnError | None:
    """Return the error for a transaction that cannot be aborted; None for one that is aborted now."""
    if state is TxnState.COMMITTED or known:
        return already_committed(txn_id)
    return None if state else no_such_txn(txn_id)


def reason(request: AbortRequest) -> str:
    """Return the reason that is stored with the transaction."""
    return f"aborted {REASONS[request.code]} ({request.who})"
