"""Errors for write conflicts that a transaction lost, with the winner: transaction, owner, time, and object.

The metastore's own text has the winner's number. Its owner is looked up when the error is made; if the metastore does
not know it, the number remains.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime

from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient
from metastore.errors import MetastoreError, TxnAbortedError
from metastore.thrift_gen.operators.ttypes import TxnLife, TxnWrite
from metastore.txns.history.rules import conflict, when

_NAMED = re.compile(r"\bTransaction (\d+)")
_CHANGES = frozenset({"update", "delete", "change"})


class WriteConflictError(TxnAbortedError):
    """Error: another transaction, ``winner``, changed the same place and committed first.

    The same work may run again.
    """

    def __init__(self, text: str, winner: int) -> None:
        super().__init__(text)
        self.winner = winner


def lost_at_commit(client: MetastoreClient, loser: int, error: TxnAbortedError) -> WriteConflictError | None:
    """Return the error of a commit that was refused for a write conflict, with its winner named.

    None for other errors.
    """
    known = conflict(str(error))
    if known is None:
        return None
    return WriteConflictError(
        f"{str(error).rstrip('. ')}. {_winner(_life(client, known.winner), known.winner)} committed its "
        f"{known.winner_operation} of {known.object} first. {_advice(loser)}",
        known.winner,
    )


def lost_while_waiting(
    client: MetastoreClient, loser: int, winner: int, locked: Collection[tuple[str, str]]
) -> WriteConflictError:
    """Return the error of a transaction whose snapshot lacks a change to the locked ``(database, table)``."""
    life = _life(client, winner)
    changed = sorted(
        _name(write)
        for write in (life.writes if life else ())
        if write.operation in _CHANGES and (write.dbname, write.tablename or "") in locked
    )
    places = ", ".join(changed or sorted(f"{db}/{table}" for db, table in locked))
    return WriteConflictError(
        f"{_winner(life, winner)} changed and committed {places} first. Transaction {loser} has locked that now, but "
        f"its snapshot is older: it would undo the change. {_advice(loser)}",
        winner,
    )


def lost_by(text: str) -> WriteConflictError:
    """Parse a sentence made by one of these errors back to the error: a planner's answer has it as a text."""
    winner = _NAMED.search(text)
    return WriteConflictError(text, int(winner[1]) if winner else 0)


def _advice(loser: int) -> str:
    return f"Nothing of transaction {loser} is left. Start again: a new transaction sees the change."


def _life(client: MetastoreClient, txn_id: int) -> TxnLife | None:
    try:
        with domain_errors():
            return client.metastore_txn_explain(txn_id)
    except MetastoreError:
        return None


def _winner(life: TxnLife | None, txn_id: int) -> str:
    """Format ``Transaction 7 of ann@host (agent), at 2026-11-21 09:00:00 UTC,`` as far as it is known."""
    if life is None or life.user is None:
        return f"Transaction {txn_id}"
    ended_at = life.outcome.endedAt
    at = f", at {when(datetime.fromtimestamp(ended_at / 1000, UTC))}," if ended_at else ""
    return f"Transaction {txn_id} of {life.user or 'unknown'}@{life.hostname or 'unknown'} ({life.agentInfo}){at}"


def _name(write: TxnWrite) -> str:
    return "/".join(part for part in (write.dbname, write.tablename, write.partitionname) if part)
