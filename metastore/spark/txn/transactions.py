"""The transactions of a session: the open block's, and those of its frames; those of single statements are Spark's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient, WriteConflictError
from metastore.errors import InvalidOperationError
from metastore.spark.txn.blocks import OpenBlock, OpenTransaction, has_block, session_block
from metastore.spark.txn.kept_reads import KeptRead, KeptReads
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
Result = TypeVar("Result")


class Transactions:
    """The transactions of a session. ``retries``: how often a statement that lost a write conflict runs again."""

    def __init__(self, spark: SparkSession, client: DomainClient, retries: int) -> None:
        self.spark = spark
        self.client = client
        self.retries = retries
        self.open: OpenBlock | KeptRead | None = None
        """What the open block of statements or reads runs in; None outside a block."""

    @cached_property
    def _kept(self) -> KeptReads:
        return KeptReads(self.spark)

    def close(self) -> None:
        """End the transactions of all reads."""
        if kept := self.__dict__.get("_kept"):  # nothing has been read otherwise, and there may be no JVM to ask
            kept.close()

    def keep(self, rows: DataFrame) -> DataFrame:
        """The rows of Spark's own plan: of the snapshot block, or as they are now; in a block Spark reads them."""
        if isinstance(self.open, KeptRead):
            return self.open.keep(rows)
        if has_block(self.spark):
            return rows
        return self._kept.begin().keep(rows)

    def reading(self, table: AcidTable, read: Callable[[OpenTransaction], DataFrame]) -> DataFrame:
        """Files that ``read`` chooses in the block's transaction, or in one that lives as long as the frame."""
        txn = self.open or self._kept.begin()
        try:
            txn.lock([str(table.name)])
            return txn.hold(read(txn))
        except BaseException:
            if isinstance(txn, KeptRead) and txn is not self.open:
                txn.end()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads inside be of one snapshot, which lives as long as the block's frames."""
        with self._opened(self._kept.begin(of_block=True)):
            yield

    @contextmanager
    def block(self) -> Iterator[OpenBlock]:
        """Let all statements inside run in one transaction: committed at the end, undone when the block raises."""
        self._require_none()
        with session_block(self.spark) as block, self._opened(block):
            yield block

    @contextmanager
    def _opened(self, txn: OpenBlock | KeptRead) -> Iterator[None]:
        self._require_none()
        self.open = txn
        try:
            yield
        finally:
            self.open = None

    def _require_none(self) -> None:
        if self.open is not None:
            raise InvalidOperationError("A transaction or snapshot block is open already; blocks do not nest.")

    @contextmanager
    def letting_go(self) -> Iterator[None]:
        """Let go of the frames that a failed statement refers to."""
        try:
            yield
        except BaseException:
            self._kept.look_soon()
            raise

    def require_writable(self) -> None:
        """Raise InvalidOperationError inside a snapshot block."""
        if isinstance(self.open, KeptRead):
            raise InvalidOperationError(
                "A snapshot block only reads: write before it, after it, or in a transaction block."
            )

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """The result of ``attempt``, which runs again when it loses a write conflict; inside a block it runs once."""
        for left in reversed(range(self.retries if self.open is None else 0)):
            try:
                return attempt()
            except WriteConflictError as lost:
                _log.info("write_conflict_run_again", winner=lost.winner, attempts_left=left)
        return attempt()
