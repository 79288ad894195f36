"""commit_txn: first committer wins, many commits in one PostgreSQL transaction.

If no member of a batch can conflict, the batch is committed in one round trip, which waits for the disk and for the
counter's row lock only if something was written. Otherwise the batch is decided here in its order, losers are aborted,
and the result is applied together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from metastore.config import TxnSettings
from metastore.db.engine import Database, PgTx
from metastore.errors import (
    AlreadyExistsError,
    ConflictRetryError,
    InvalidRequestError,
    MetaError,
    MetastoreError,
    NoSuchObjectError,
    NoSuchTxnError,
    TxnAbortedError,
)
from metastore.ids import DatabaseName, TableName
from metastore.telemetry.txns import TxnStats
from metastore.txns.commit import store as commit_store
from metastore.txns.commit.store import CommitFacts, CommitPlan
from metastore.txns.core import store
from metastore.txns.core.rules import (
    COMPONENTS_STAY_BEHIND,
    KEY_VALUE_PREFIX,
    RECORDS_COMMIT_POINT,
    AbortCode,
    CommittedWrite,
    Component,
    Conflict,
    TxnState,
    TxnType,
    already_aborted,
    first_conflict,
    no_such_txn,
    shielded,
)
from metastore.txns.replication import store as repl_store
from metastore.txns.streams import store as stream_store
from metastore.txns.streams.rules import StreamBatch, StreamPosition, is_repetition
from metastore.txns.write_events import store as write_event_store
from metastore.txns.write_events.store import WriteEvent


class KeyValue(NamedTuple):
    """A table parameter to be changed together with the commit."""

    table_id: int
    key: str
    value: str


class LastReplId(NamedTuple):
    """The position of replication, recorded together with the commit."""

    database: DatabaseName
    last_id: int
    table: TableName | None = None
    partitions: tuple[str, ...] = ()


class CommitRequest(NamedTuple):
    """A client's request of commit_txn.

    ``excl_write_enabled``: None when the client did not say, which is not the same as True (TXN-31).
    ``writes``: the writes of a replayed commit: (table, partition, write id). ``files``: the same file by file, if they
    are to be kept; each names its transaction.
    ``batch``: the batch of a streaming query that the transaction writes, and the table that has to remember it.
    """

    txn_id: int
    excl_write_enabled: bool | None = None
    repl_policy: str | None = None
    replays: bool = False
    key_value: KeyValue | None = None
    last_repl_id: LastReplId | None = None
    writes: tuple[tuple[TableName, str, int], ...] = ()
    files: tuple[WriteEvent, ...] = ()
    batch: tuple[TableName, StreamBatch] | None = None

    @property
    def is_silent(self) -> bool:
        """True if the transaction belongs to replication itself; such a commit makes no event."""
        return self.repl_policy is not None and not self.replays

    @property
    def is_plain(self) -> bool:
        """True if the commit changes only the transaction itself."""
        return not (self.replays or self.is_silent or self.key_value or self.last_repl_id or self.writes or self.batch)


class CommitVerdict(NamedTuple):
    """The outcome of a batch of commits: who commits, who loses, what each caller hears."""

    plan: CommitPlan
    losers: list[Conflict]
    answers: dict[int, MetastoreError]


@dataclass(frozen=True)
class CommitService:
    """The commits of transactions."""

    db: Database
    settings: TxnSettings
    stats: TxnStats = field(default_factory=TxnStats)

    def commit_txn(self, requests: Sequence[CommitRequest]) -> list[MetastoreError | None]:
        """Commit transactions, in the order of the list.

        Serialises on: the transaction counter, for those that wrote something. Retry: idempotent.
        Answers: TxnAbortedError (also for the loser of a write conflict, which is then aborted), NoSuchTxnError.
        """
        plain = {request.txn_id: request for request in requests if request.is_plain}
        refusals = self._commit_plain(plain) if plain else {}
        answers = [
            refusals.get(request.txn_id) if request.is_plain else self._commit_special(request) for request in requests
        ]
        self.stats.committed.inc(answers.count(None))
        return answers

    def _commit_plain(self, requests: Mapping[int, CommitRequest]) -> dict[int, MetastoreError]:
        if commit_store.commit_uncontended(self.db, requests, require_write_ids=self.settings.require_write_ids):
            return {}
        with self.db.begin() as pg:
            verdict = self._decide_and_apply(pg, requests)
        self.stats.aborted.labels("conflict").inc(len(verdict.losers))
        return self._recognised(verdict.answers)

    def _decide_and_apply(self, pg: PgTx, requests: Mapping[int, CommitRequest]) -> CommitVerdict:
        claims = [request.txn_id for request in requests.values() if request.excl_write_enabled]
        facts = commit_store.lock_for_commit(pg, list(requests), claims)
        verdict = decide(requests, facts)
        bare = self._without_write_id(pg, verdict.plan, facts)
        if bare:
            verdict = decide({txn_id: request for txn_id, request in requests.items() if txn_id not in bare}, facts)
            store.abort(pg, [(txn_id, AbortCode.NONE, message) for txn_id, message in bare.items()])
            verdict.answers.update({txn_id: TxnAbortedError(message) for txn_id, message in bare.items()})
        if verdict.plan.committed:
            commit_store.apply_commits(pg, facts.commit_id, verdict.plan)
        if verdict.losers:
            store.abort(
                pg,
                [
                    (lost.component.txn_id, AbortCode.WRITE_CONFLICT, lost.message(facts.commit_id))
                    for lost in verdict.losers
                ],
            )
        return verdict

    def _without_write_id(self, pg: PgTx, plan: CommitPlan, facts: CommitFacts) -> dict[int, str]:
        """Return the transactions that must not commit, each with the reason.

        A 2.3 client names directories by transaction id: readers of write ids would misread its rows (TXN-32). Its
        transaction is aborted, since each refusal that commit_txn declares tells a client that it has ended.
        """
        if not self.settings.require_write_ids:
            return {}
        bare = [
            (txn_id, component.name)
            for txn_id in plan.completing
            for component in facts.components.get(txn_id, ())
            if component.write_id is None
        ]
        refused = repl_store.select_transactional(pg, {name for _, name in bare}) if bare else set()
        return {
            txn_id: f"Transaction txnid:{txn_id} was aborted: it declares a write to the transactional table "
            f"{name} without having allocated a write id, and its files would be misread. Write with a "
            "client of Hive 3 or later, or set metastore.txn.require.write.ids to false."
            for txn_id, name in sorted(bare, reverse=True)
            if name in refused
        }

    def _recognised(self, answers: dict[int, MetastoreError]) -> dict[int, MetastoreError]:
        """Return the answers without errors for transactions that completed components show to be committed."""
        unknown = [txn_id for txn_id, error in answers.items() if isinstance(error, NoSuchTxnError)]
        for txn_id in store.has_completed_components(self.db, unknown) if unknown else ():
            del answers[txn_id]
        return answers

    def _commit_special(self, request: CommitRequest) -> MetastoreError | None:
        """Commit together with another change in the same PostgreSQL transaction: all or nothing.

        A repetition after a lost answer changes nothing, since other transactions may have gone on from there.
        """
        txn_id = request.txn_id
        if request.replays:
            target = repl_store.select_targets(self.db, [request]).get((request.repl_policy, txn_id))
            if target is None:
                return None
            txn_id = target
        try:
            with self.db.begin() as pg:
                if request.is_silent:
                    store.silence(pg)
                verdict = (
                    self._commit_replayed(pg, request, txn_id)
                    if request.replays
                    else self._decide_and_apply(pg, {txn_id: request})
                )
                if verdict.plan.committed:
                    self._note_replication(pg, request)
                    self._change_parameter(pg, request)
                    self._note_batch(pg, request)
        except ConflictRetryError:
            raise
        except MetastoreError as error:
            return error
        self.stats.aborted.labels("conflict").inc(len(verdict.losers))
        return self._recognised(verdict.answers).get(txn_id)

    @staticmethod
    def _commit_replayed(pg: PgTx, request: CommitRequest, txn_id: int) -> CommitVerdict:
        """The source warehouse has decided: no conflict check; what was written is as it reports."""
        facts = commit_store.lock_for_commit(pg, [txn_id], ())
        refusal = refused(txn_id, facts)
        if refusal is not None or txn_id not in open_ones(facts):
            return CommitVerdict(CommitPlan([], [], [], []), [], {txn_id: refusal} if refusal else {})
        plan = CommitPlan([txn_id], [], [], [])
        commit_store.apply_commits(pg, facts.commit_id, plan)
        commit_store.insert_completed(pg, txn_id, request.writes)
        if request.files:
            write_event_store.upsert(pg, [file._replace(txn_id=txn_id) for file in request.files])
        repl_store.delete_target(pg, txn_id)
        return CommitVerdict(plan, [], {})

    @staticmethod
    def _note_replication(pg: PgTx, request: CommitRequest) -> None:
        if request.last_repl_id is not None:
            database, last_id, table, partitions = request.last_repl_id
            missing = repl_store.update_last_id(pg, database, table, partitions, last_id)
            if missing:
                raise MetaError(f"Cannot note the replication id {last_id}: {' and '.join(missing)} does not exist")

    @staticmethod
    def _change_parameter(pg: PgTx, request: CommitRequest) -> None:
        if request.key_value is None:
            return
        table_id, key, value = request.key_value
        if not key.startswith(KEY_VALUE_PREFIX):
            raise InvalidRequestError(f"The key that a commit changes must start with {KEY_VALUE_PREFIX}, not {key!r}")
        if not repl_store.update_table_parameter(pg, table_id, key, value):
            raise MetaError(f"Only one existing parameter may change with a commit: table {table_id} has no {key!r}")

    @staticmethod
    def _note_batch(pg: PgTx, request: CommitRequest) -> None:
        """Record the batch of a streaming query, once; of two runs of a query only the first commits it."""
        if request.batch is None:
            return
        name, batch = request.batch
        table_id = stream_store.lock_table_id(pg, name)
        if table_id is None:
            raise NoSuchObjectError(f"Table {name} does not exist, so it cannot have batch {batch.batch_id}")
        if stream_store.advance(pg, table_id, batch, request.txn_id):
            return
        position = stream_store.select_position(pg, table_id, batch.query_id)
        if is_repetition(position, batch):
            raise AlreadyExistsError(f"{name} has come to {position} of streaming query {batch.query_id} already")

    def stream_positions(self, name: TableName) -> list[StreamPosition]:
        """Return the position of each streaming query in a table, the latest first."""
        return stream_store.select_positions(self.db, name)


def decide(requests: Mapping[int, CommitRequest], facts: CommitFacts) -> CommitVerdict:
    """Judge a batch in its order; a member that may commit counts as committed for those behind it."""
    written = list(facts.written)
    verdict = CommitVerdict(CommitPlan([], [], [], []), [], {})
    alive = open_ones(facts)
    for txn_id, request in requests.items():
        if txn_id not in alive:
            refusal = refused(txn_id, facts)
            if refusal is not None:
                verdict.answers[txn_id] = refusal
            continue
        kind = facts.txns[txn_id].txn_type
        components = facts.components.get(txn_id, []) if kind not in RECORDS_COMMIT_POINT else []
        changes = [component for component in components if component.changes_rows and kind is not TxnType.READ_ONLY]
        excused = bool(request.excl_write_enabled) and shielded(changes, facts.held)
        conflict = first_conflict(changes, [write for write in written if not (excused and write.guarded)])
        if conflict is not None:
            verdict.losers.append(conflict)
            verdict.answers[txn_id] = TxnAbortedError(conflict.message(facts.commit_id))
            continue
        _add(verdict.plan, txn_id, kind, changes)
        written += [
            CommittedWrite(txn_id, facts.commit_id, change.name, change.partition, change.operation)
            for change in changes
        ]
    return verdict


def _add(plan: CommitPlan, txn_id: int, kind: TxnType, changes: Sequence[Component]) -> None:
    plan.committed.append(txn_id)
    if changes:
        plan.changing.append(txn_id)
    if kind not in COMPONENTS_STAY_BEHIND | RECORDS_COMMIT_POINT:
        plan.completing.append(txn_id)
    if kind in RECORDS_COMMIT_POINT or kind is TxnType.REBALANCE_COMPACTION:  # Hive does not record these.
        plan.compacting.append(txn_id)


def open_ones(facts: CommitFacts) -> set[int]:
    """Return the transactions that can be committed at all."""
    return {record.txn_id for record in facts.txns.values() if record.state is TxnState.OPEN}


def refused(txn_id: int, facts: CommitFacts) -> MetastoreError | None:
    """Return the error for a transaction that is not open; None for a transaction that is committed already."""
    record = facts.txns.get(txn_id)
    if record is None:
        return no_such_txn(txn_id)
    return already_aborted(txn_id) if record.state is TxnState.ABORTED else None
