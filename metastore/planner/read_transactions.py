"""The transaction in which a procedure reads, in the caller's name."""

from collections.abc import Iterator
from contextlib import contextmanager

from metastore.client.txn_manager import Transaction, TxnManager
from metastore.planner.call import PlannerCall
from metastore.txns.core.rules import TxnType


@contextmanager
def reading(call: PlannerCall, agent: str) -> Iterator[Transaction]:
    """Open a transaction that only reads, inside the block."""
    manager = TxnManager(call.client, host=call.body.text("host", "") or None)
    user = call.user or call.body.text("user", call.client.user)
    with manager.transaction(kind=TxnType.READ_ONLY, user=user, agent=agent) as txn:
        yield txn
