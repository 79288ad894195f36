"""When a transaction may say that it reads tables, and no others.

Rule: who has said nothing may read everything. The first to be named are tables that everything has waited for until
then. What is named later may have been cleaned meanwhile: the Cleaner notes whom it did not wait for (ADR 136).
"""

from collections.abc import Sequence

from metastore.errors import MetaError, MetastoreError
from metastore.txns.core.rules import TxnState, required_open

WAIVED = -1
"""In place of 0 for a table with which the Cleaner did not wait for the transaction. Only the sign counts."""


def refusal(txn_id: int, state: TxnState | None, waived: Sequence[str]) -> MetastoreError | None:
    """Why a transaction cannot read tables. ``waived``: those of them that were cleaned without waiting for it."""
    if waived:
        return MetaError(
            f"Transaction txnid:{txn_id} had said what it reads, without {', '.join(sorted(waived))}. Files of that "
            "which its snapshot needs may have been removed since: read it in a new transaction."
        )
    return required_open(txn_id, state)
