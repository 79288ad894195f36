"""Errors about ended transactions with their history: who ended the transaction, when and why.

Rule: the database is read only if a call failed, once for all failures of a batch, and the beginning of a text and the
type of an error never change. An error about a lock that ended with its transaction has its history too.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

import structlog

from metastore.errors import EndedError, NoSuchLockError
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.dispatch.registry import Handler
from metastore.thrift_server.wire.codec import CODECS

_log = structlog.get_logger("metastore.server")
_MOST_LOCKS = 20
"""Locks of a batch whose transactions are looked for; that is a search, unlike a look at a transaction."""


class History(Protocol):
    """The history of transactions."""

    def tell(self, errors: Sequence[object]) -> None:
        """Append the outcome of the named transaction to each error's text."""

    def owners(self, lock_ids: Collection[int]) -> dict[int, int]:
        """Return the transactions that were aborted lately with these locks, by lock."""


def explained(handlers: Mapping[str, Handler], history: History) -> dict[str, Handler]:
    """Return the handlers, with explained errors for methods that can say "no such transaction"."""
    explain = partial(_explain, history)
    return {
        name: dataclasses.replace(handler, explain=explain) if CODECS[name].raises_no_such_txn else handler
        for name, handler in handlers.items()
    }


def _explain(history: History, calls: Sequence[Call], results: Sequence[object]) -> None:
    """Append the outcomes of their transactions to the errors of a batch. A failure changes nothing."""
    try:
        _find_owners(calls, results, history)
        history.tell([result for result in results if isinstance(result, EndedError)])
    except Exception:  # noqa: BLE001 - the clients get their errors all the same
        _log.exception("ended_txns_not_explained", calls=len(calls))


def _find_owners(calls: Sequence[Call], results: Sequence[object], history: History) -> None:
    gone = [
        (call.args[0].lockid, error)
        for call, error in zip(calls, results, strict=False)
        if isinstance(error, NoSuchLockError)
    ][:_MOST_LOCKS]
    owners = history.owners({lock_id for lock_id, _ in gone}) if gone else {}
    for lock_id, error in gone:
        error.txn_id = owners.get(lock_id)
