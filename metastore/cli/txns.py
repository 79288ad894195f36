"""The command ``metastore txn``: an operator's work with transactions, and their outcomes."""

import sys
from typing import Any

import click

from metastore.cli.connected import connected, instant, uri_option
from metastore.cli.locks import place
from metastore.cli.output import form_option, say, show_fields, show_rows, show_value, table
from metastore.errors import NoSuchTxnError
from metastore.txns.core.rules import AbortCode

COMMITTED = "committed"
NOTHING_KNOWN = frozenset({"never_opened", "unknown"})


@click.group()
def txn() -> None:
    """Find out the outcome of transactions, or abort them."""


@txn.command(short_help="Abort transactions.")
@click.argument("txn_ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))
@click.option(
    "--owner-gone", is_flag=True, help="The owners' processes have ended for certain: nothing more comes of them."
)
@uri_option
@form_option
def abort(txn_ids: tuple[int, ...], owner_gone: bool, uri: str | None, form: str) -> None:
    """Abort transactions: their locks are free at once, and nothing that they wrote will be seen.

    Snapshots go on naming them until a major compaction covers what their owners may still publish. With --owner-gone
    they do so only until the Cleaner has removed the files, also where they were aborted before.

    Exit code 1 if one of them could not be aborted: it is committed, or unknown.
    """
    answers = []
    code = AbortCode.ROLLBACK if owner_gone else AbortCode.QUERY_COMMAND
    with connected(uri) as client:
        for txn_id in txn_ids:
            try:
                client.abort_txn(client.types.AbortTxnRequest(txnid=txn_id, errorCode=int(code)))
            except NoSuchTxnError as error:
                answers.append((txn_id, False, str(error)))
            else:
                answers.append((txn_id, True, "aborted"))
    show_rows(["txn_id", "aborted", "answer"], answers, form)
    sys.exit(0 if all(aborted for _, aborted, _ in answers) else 1)


@txn.command(short_help="Whether it was committed.")
@click.argument("txn_id", metavar="ID", type=click.IntRange(min=1))
@uri_option
@form_option
def outcome(txn_id: int, uri: str | None, form: str) -> None:
    """Show the outcome of a transaction, for a client that lost its answer.

    One of committed, aborted, open, never_opened and unknown, and how that is known; also long after the transaction's
    record is gone. Exit code 0 if it was committed, 1 otherwise. An open transaction may still be committed, by a
    commit that is under way.
    """
    with connected(uri) as client:
        answer = client.metastore_txn_outcome(txn_id)
    show_fields(_outcome(answer), form)
    sys.exit(0 if answer.outcome == COMMITTED else 1)


@txn.command(short_help="A transaction's life.")
@click.argument("txn_id", metavar="ID", type=click.IntRange(min=1))
@uri_option
@form_option
def explain(txn_id: int, uri: str | None, form: str) -> None:
    """Show a transaction's life: its opener, its heartbeats, its writes and locks, its end and the reason.

    An aborted transaction is shown with its locks of that moment; a commit keeps none. Exit code 1 if
    nothing is known of it.
    """
    with connected(uri) as client:
        life = client.metastore_txn_explain(txn_id)
    fields, writes, locks = (
        _fields(life),
        [_write(write) for write in life.writes],
        [_lock(lock) for lock in life.locks],
    )
    if form == "table":
        show_fields({name: value for name, value in fields.items() if value is not None}, form)
        if writes:
            say(
                "\n"
                + table(
                    ["wrote", "operation", "write id"],
                    [(place(write), write["operation"], write["write_id"]) for write in writes],
                )
            )
        if locks:
            say(
                "\n"
                + table(
                    ["lock", "on", "type", "state", "requested", "acquired"],
                    [
                        (
                            lock["lock_id"],
                            place(lock),
                            lock["type"].upper(),
                            lock["state"].upper(),
                            lock["requested_at"],
                            lock["acquired_at"],
                        )
                        for lock in locks
                    ],
                )
            )
        for name, listed, count in (("writes", writes, life.writeCount), ("locks", locks, life.lockCount)):
            if len(listed) < count:
                say(f"\n{count - len(listed)} more {name} are not listed.")
    else:
        show_value(
            {**fields, "writes": writes, "write_count": life.writeCount, "locks": locks, "lock_count": life.lockCount},
            form,
        )
    sys.exit(1 if life.outcome.outcome in NOTHING_KNOWN else 0)


def _outcome(answer: Any) -> dict[str, Any]:
    return {
        "txn_id": answer.txnid,
        "outcome": answer.outcome,
        "reason": answer.reason,
        "ended_at": instant(answer.endedAt),
    }


def _fields(life: Any) -> dict[str, Any]:
    lost = life.conflict
    conflict = None
    if lost is not None:
        owner = f" of {lost.user}@{lost.hostname} ({lost.agentInfo})" if lost.user is not None else ""
        conflict = (
            f"{lost.operation} of {lost.object} after the {lost.winnerOperation} of transaction {lost.winner}"
            f"{owner}, which committed at {lost.winnerCommitId}"
        )
    waiting = any(lock.state == "waiting" for lock in life.locks) and life.outcome.outcome == "open"
    return {
        **_outcome(life.outcome),
        "type": life.type,
        "user": life.user,
        "host": life.hostname,
        "agent_info": life.agentInfo,
        "started_at": instant(life.startedAt),
        "last_heartbeat_at": instant(life.lastHeartbeatAt),
        "heartbeats": life.heartbeatCount,
        "longest_silence_s": _seconds(life.longestGapMs),
        "expires_in_s": _seconds(life.expiresInMs),
        "commit_id": life.commitId,
        "abort_code": life.abortCode,
        "conflict": conflict,
        "waits": f"`metastore lock why txn:{life.outcome.txnid}` tells for whom" if waiting else None,
        "record": "removed, this is what was kept of it" if life.fromHistory else None,
    }


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / 1000


def _write(write: Any) -> dict[str, Any]:
    return {
        "catalog": write.catName,
        "db": write.dbname,
        "table": write.tablename,
        "partition": write.partitionname,
        "operation": write.operation,
        "write_id": write.writeId,
    }


def _lock(lock: Any) -> dict[str, Any]:
    return {
        "lock_id": lock.lockid,
        "catalog": lock.catName,
        "db": lock.dbname,
        "table": lock.tablename,
        "partition": lock.partitionname,
        "type": lock.type,
        "state": lock.state,
        "requested_at": instant(lock.requestedAt),
        "acquired_at": instant(lock.acquiredAt),
    }
