"""Our own calls for operators: decode, ask the service, encode."""

from __future__ import annotations

from datetime import datetime, timedelta

from metastore.errors import InvalidRequestError
from metastore.ids import TableName, table_name
from metastore.locks.rules import Lock
from metastore.locks.service import LockService
from metastore.locks.why.service import Claim, Explained, Question, WhyService
from metastore.thrift_gen.operators import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.txns.history.rules import Answer
from metastore.txns.history.service import HeldLock, HistoryService, Life, TableCommit, Write


class OperatorHandlers:
    """The calls about outcomes of transactions, and about waits."""

    def __init__(self, history: HistoryService, waits: WhyService, locks: LockService) -> None:
        """Prepare the handlers. ``history``, ``waits`` and ``locks`` have the answers."""
        self._history = history
        self._waits = waits
        self._locks = locks

    def metastore_txn_outcome(self, call: Call, txnid: int) -> ttypes.TxnOutcome:
        """Return the outcome of a transaction."""
        call.log(txn_id=txnid)
        return _outcome(_wanted(txnid, "txnid"), self._history.outcome(txnid))

    def metastore_txn_explain(self, call: Call, txnid: int) -> ttypes.TxnLife:
        """Return a transaction's life."""
        call.log(txn_id=txnid)
        return _life(_wanted(txnid, "txnid"), self._history.explain(txnid))

    def metastore_table_history(
        self,
        call: Call,
        catalog: str | None,
        db: str | None,
        table: str | None,
        after: int | None,
        limit: int | None,
        aborted: bool | None,
    ) -> list[ttypes.TableCommit]:
        """Return the commits of a table that are on record."""
        if not db or not table:
            raise InvalidRequestError("The request needs the name of a database and of a table")
        name = table_name(db, table, catalog)
        call.log(table=str(name))
        commits = self._history.table_commits(name, after or 0, max(0, _wanted(limit, "limit")), aborted=bool(aborted))
        return [_table_commit(commit) for commit in commits]

    def metastore_note_rows(self, call: Call, txnid: int | None, rows: list[ttypes.WrittenRows] | None) -> None:
        """Record a transaction's row counts."""
        call.log(txn_id=txnid)
        self._history.note_rows(_wanted(txnid, "txnid"), [_written(one) for one in rows or ()])

    def metastore_lock_why(self, call: Call, request: ttypes.LockWhyRequest) -> ttypes.LockWhyResponse:
        """Return the transactions and clients behind a wait."""
        question = _question(request)
        call.log(asked=str(question))
        explanation = self._waits.explain(question)
        return ttypes.LockWhyResponse(
            found=explanation.found,
            blocked=explanation.blocked,
            explanation=explanation.text,
            owners=[_owner(owner) for owner in explanation.owners],
        )

    def metastore_show_deadlocks(self, _call: Call, limit: int) -> list[ttypes.EndedDeadlock]:
        """Return the latest deadlocks that were ended, latest first."""
        return [
            ttypes.EndedDeadlock(
                foundAt=_millis(deadlock.found_at), victim=deadlock.victim_txn_id, explanation=deadlock.message
            )
            for deadlock in self._locks.select_deadlocks(max(0, _wanted(limit, "limit")))
        ]


def _wanted(number: int | None, name: str) -> int:
    if number is None:
        raise InvalidRequestError(f"{name} is not set")
    return number


def _question(request: ttypes.LockWhyRequest | None) -> Question:
    if request is None:
        raise InvalidRequestError("The question is missing")
    questions = [request.lockid is not None, request.txnid is not None, request.tablename is not None]
    if sum(questions) != 1:
        raise InvalidRequestError("Ask about a lockid, or a txnid, or a dbname with a tablename")
    if request.tablename is None:
        return Question(request.lockid or 0, request.txnid or 0)
    return Question(table=table_name(request.dbname or "default", request.tablename, request.catName))


def _outcome(txn_id: int, answer: Answer) -> ttypes.TxnOutcome:
    return ttypes.TxnOutcome(
        txnid=txn_id, outcome=str(answer.outcome), reason=answer.reason, endedAt=_millis(answer.ended_at)
    )


def _table_commit(commit: TableCommit) -> ttypes.TableCommit:
    return ttypes.TableCommit(
        writeId=commit.write_id,
        txnid=commit.txn_id,
        user=commit.user,
        hostname=commit.host,
        agentInfo=commit.agent_info,
        startedAt=_millis(commit.started_at),
        committedAt=_millis(commit.committed_at),
        operations=commit.operations,
        partitions=commit.partitions,
        complete=commit.is_complete,
        rowsInserted=commit.inserted,
        rowsDeleted=commit.deleted,
        aborted=commit.is_aborted or None,
    )


def _written(rows: ttypes.WrittenRows) -> tuple[TableName, int, int]:
    if not rows.dbname or not rows.tablename:
        raise InvalidRequestError("The request needs the name of a database and of a table")
    name = table_name(rows.dbname, rows.tablename, rows.catName)
    return name, _wanted(rows.inserted, "inserted"), _wanted(rows.deleted, "deleted")


def _life(txn_id: int, life: Life) -> ttypes.TxnLife:
    answer = ttypes.TxnLife(
        outcome=_outcome(txn_id, life.answer),
        writes=[_write(write) for write in life.writes],
        writeCount=life.write_count,
        locks=[_held(lock) for lock in life.locks],
        lockCount=life.lock_count,
        fromHistory=life.from_history,
        expiresInMs=_duration(life.expires_in),
    )
    if life.record is not None:
        record = life.record
        answer.type, answer.user, answer.hostname, answer.agentInfo = (
            record.type.name.lower(),
            record.user,
            record.host,
            record.agent_info,
        )
        answer.startedAt, answer.lastHeartbeatAt = _millis(record.started_at), _millis(record.last_heartbeat_at)
        answer.heartbeatCount, answer.longestGapMs = record.heartbeat_count, _duration(life.longest_silence)
        answer.commitId, answer.abortCode, answer.abortReason = record.commit_id, record.abort_code, record.abort_reason
    if life.conflict is not None:
        lost = life.conflict
        answer.conflict = ttypes.TxnConflict(
            winner=lost.winner,
            winnerCommitId=lost.winner_commit_id,
            object=lost.object,
            operation=lost.operation,
            winnerOperation=lost.winner_operation,
        )
        if life.winner is not None:
            answer.conflict.user, answer.conflict.hostname = life.winner.user, life.winner.host
            answer.conflict.agentInfo = life.winner.agent_info
    return answer


def _write(write: Write) -> ttypes.TxnWrite:
    return ttypes.TxnWrite(
        catName=write.name.catalog,
        dbname=write.name.db,
        tablename=write.name.table or None,
        partitionname=write.partition or None,
        operation=write.operation,
        writeId=write.write_id,
    )


def _held(lock: HeldLock) -> ttypes.LockClaim:
    return _claim(lock.ext_id, lock.name, lock.partition, lock.type, lock.state, lock.requested_at, lock.acquired_at)


def _owner(explained: Explained) -> ttypes.LockOwner:
    return ttypes.LockOwner(
        txnid=explained.owner.txn_id,
        lockid=min((claim.lock.ext_id for claim in explained.claims), default=explained.owner.ext_id),
        user=explained.info.user,
        hostname=explained.info.host,
        agentInfo=explained.info.agent_info,
        ageMs=_duration(explained.age),
        lastHeartbeatAt=_millis(explained.info.last_heartbeat_at),
        silentMs=_duration(explained.silence),
        expiresInMs=_duration(explained.expires_in),
        endsWith=explained.ends_with,
        claims=[_wish(claim) for claim in explained.claims],
        waitsFor=explained.waits_for,
        root=explained.is_root,
        inCycle=explained.in_cycle,
        asked=explained.asked,
    )


def _wish(claim: Claim) -> ttypes.LockClaim:
    lock: Lock = claim.lock
    return _claim(
        lock.ext_id,
        TableName(*lock.object[:3]),
        lock.object.partition,
        lock.type,
        lock.state,
        claim.times.requested_at,
        claim.times.acquired_at,
    )


def _claim(
    lock_id: int,
    name: TableName,
    partition: str,
    kind: str,
    state: str,
    requested_at: datetime,
    acquired_at: datetime | None,
) -> ttypes.LockClaim:
    return ttypes.LockClaim(
        lockid=lock_id,
        catName=name.catalog,
        dbname=name.db,
        tablename=name.table or None,
        partitionname=partition or None,
        type=str(kind),
        state=str(state),
        requestedAt=_millis(requested_at),
        acquiredAt=_millis(acquired_at),
    )


def _millis(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)


def _duration(length: timedelta | None) -> int | None:
    return None if length is None else int(length.total_seconds() * 1000)
