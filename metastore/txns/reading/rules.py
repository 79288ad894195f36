"""Rules for a transaction that declares the tables that it reads, and no others.

Rule: a transaction without a declaration may read everything. Until its first declaration every cleaning has waited for
it. A table that it declares later may have been cleaned meanwhile: the Cleaner records the transactions for which it
did not wait (ADR 136).
"""

from collections.abc import Sequence

from metastore.errors import MetaError, MetastoreError
from metastore.txns.core.rules import TxnState, required_open

WAIVED = -1
"""In place of 0 for a table with which the Cleaner did not wait for the transaction. Only the sign counts."""


def refusal(txn_id: int, state: TxnState | None, waived: Sequence[str]) -> MetastoreError | None:
    """Return why a transaction cannot read tables; None if it can.

    ``waived``: tables that were cleaned without waiting for it.
    """
    if waived:
        return MetaError(
            f"Transaction txnid:{txn_id} had said what it reads, without {', '.join(sorted(waived))}. Files of that "
            "which its snapshot needs may have been removed since: read it in a new transaction."
        )
    return required_open(txn_id, state)
