"""Decisions about batches of streaming queries: a batch is new, or committed already, or its query has gone back.

Rule: a batch counts as committed only if the very same batch is on record. A batch is identified by its query, its
number and a digest of its plan (the part of the source that it contains): a query that was set back repeats a number.
"""

from datetime import datetime
from typing import NamedTuple

from metastore.errors import InvalidOperationError, InvalidRequestError
from metastore.txns.history.rules import when

LONGEST_TEXT = 256


class StreamBatch(NamedTuple):
    """One batch of a streaming query. ``plan``: a digest of its content; a repetition has the same."""

    query_id: str
    batch_id: int
    plan: str

    def required(self) -> "StreamBatch":
        """Check the batch and return it. Raises: InvalidRequestError if it cannot be recorded."""
        if not self.query_id or self.batch_id < 0 or max(len(self.query_id), len(self.plan)) > LONGEST_TEXT:
            raise InvalidRequestError(
                f"A batch has a query's id, a number from 0 on and a plan of at most {LONGEST_TEXT} characters"
            )
        return self


class StreamPosition(NamedTuple):
    """The position of a streaming query in a table: its last batch, and the transaction that committed it."""

    batch: StreamBatch
    txn_id: int
    at: datetime

    def __str__(self) -> str:
        """Format the position for people."""
        return f"batch {self.batch.batch_id} (transaction {self.txn_id}, {when(self.at)})"


def is_repetition(position: StreamPosition | None, batch: StreamBatch) -> bool:
    """Return True if the batch is committed already; False for the next batch.

    Raises: InvalidOperationError when the query has gone back, so that it is unknown which rows are there already.
    """
    if position is None or batch.batch_id > position.batch.batch_id:
        return False
    if batch == position.batch:
        return True
    happened = "has other rows than before" if batch.batch_id == position.batch.batch_id else "is an earlier one"
    raise InvalidOperationError(
        f"Batch {batch.batch_id} of streaming query {batch.query_id} {happened}: the table has come to {position}. The "
        "query's checkpoint was set back, an older copy of it for instance, so it cannot be told which rows the table "
        "has already. Find that out, and start the query with a new checkpoint from there"
    )
