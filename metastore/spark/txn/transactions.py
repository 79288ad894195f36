"""The transactions of a session: that of its open block, and those for making frames. Spark has those of statements."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient, WriteConflictError
from metastore.errors import InvalidOperationError
from metastore.spark.txn.blocks import OpenBlock, OpenRead, OpenTransaction, has_block, open_read, session_block
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
Result = TypeVar("Result")


class Transactions:
    """The transactions of a session. ``retries``: how often a statement that lost a write conflict runs again."""

    def __init__(self, spark: SparkSession, client: DomainClient, retries: int) -> None:
        self.spark = spark
        self.client = client
        self.retries = retries
        self.open: OpenBlock | OpenRead | None = None
        """The transaction of the open block of statements or reads; None outside a block."""

    def pinned(self, rows: DataFrame) -> DataFrame:
        """Return the rows in the snapshot block's snapshot, or in a new one. In other blocks Spark reads them."""
        if isinstance(self.open, OpenRead):
            return self.open.pinned(rows)
        if has_block(self.spark):
            return rows
        with open_read(self.spark) as read:
            return read.pinned(rows)

    def reading(self, table: AcidTable, read: Callable[[OpenTransaction], DataFrame]) -> DataFrame:
        """Return a frame of the files that ``read`` chooses, in the block's transaction or in one of its own."""
        with nullcontext(self.open) if self.open else open_read(self.spark) as txn:
            txn.lock([str(table.name)])
            return read(txn)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads inside see one snapshot. Their frames show it after the block too."""
        self._require_none()
        with open_read(self.spark) as read, self._opened(read):
            yield

    @contextmanager
    def block(self) -> Iterator[OpenBlock]:
        """Let all statements inside run in one transaction: committed at the end, undone when the block raises."""
        self._require_none()
        with session_block(self.spark) as block, self._opened(block):
            yield block

    @contextmanager
    def _opened(self, txn: OpenBlock | OpenRead) -> Iterator[None]:
        self.open = txn
        try:
            yield
        finally:
            self.open = None

    def _require_none(self) -> None:
        if self.open is not None:
            raise InvalidOperationError("A transaction or snapshot block is open already; blocks do not nest.")

    def require_writable(self) -> None:
        """Raise InvalidOperationError inside a snapshot block."""
        if isinstance(self.open, OpenRead):
            raise InvalidOperationError(
                "A snapshot block only reads: write before it, after it, or in a transaction block."
            )

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """Return the result of ``attempt``; run it again when it loses a write conflict, unless a block is open."""
        for left in reversed(range(self.retries if self.open is None else 0)):
            try:
                return attempt()
            except WriteConflictError as lost:
                _log.info("write_conflict_run_again", winner=lost.winner, attempts_left=left)
        return attempt()
