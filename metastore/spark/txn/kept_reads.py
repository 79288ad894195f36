"""Reads of a session whose own SQL knows ACID tables: frames keep their snapshot in the session's catalog.

Rule: the transaction is one of the JVM's (``KeptRead.java``), which alone knows what can still read in it, and ends it.
So every statement of the session, by ``spark.sql`` too, sees the session's own reads. What Python has dropped it still
refers to, in cycles, until its own garbage collector runs: so that runs soon after.
"""

from collections.abc import Iterable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from metastore.client import DomainClient
from metastore.spark.jvm.compiled import catalog_object
from metastore.spark.txn.held_snapshots import HeldFrames
from metastore.spark.txn.joined import JoinedTransaction, own_errors

_POLL_S = 0.5
_GONE = (Py4JError, PySparkException, OSError)
"""The JVM or its Spark is gone, and with it everything that could read."""


class KeptReads:
    """The read transactions of a session, which live as long as their frames."""

    def __init__(self, spark: SparkSession, client: DomainClient) -> None:
        self._spark = spark
        self._client = client
        self._frames = catalog_object(spark, "Frames")
        self._session: Any = spark._jsparkSession  # noqa: SLF001 - PySpark shows no other way
        self._owner = self._frames.owner(self._session)
        self._held = HeldFrames(spark)
        self._closing = Event()
        self._watcher: Thread | None = None

    def begin(self) -> "KeptRead":
        """A new one, which is opened when something is read in it."""
        if self._watcher is None:
            self._watcher = Thread(target=_collect, args=(self._held, self._closing), name="acid-drops", daemon=True)
            self._watcher.start()
        with own_errors():
            read = self._frames.read(self._session, self._owner)
        return KeptRead(self._spark, self._client, read, self._frames, self._held)

    def give_way(self, tables: Iterable[tuple[str, str]]) -> None:
        """Raise InvalidOperationError for a table that the session may still read; drops unused frames first."""
        with own_errors():
            self._frames.giveWay(self._session, [f"{db}.{table}" for db, table in tables])

    def close(self) -> None:
        """End all."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()
        with suppress(*_GONE):
            self._owner.close()


class KeptRead(JoinedTransaction):
    """A read transaction of frames."""

    def __init__(self, spark: SparkSession, client: DomainClient, read: Any, frames: Any, held: HeldFrames) -> None:
        super().__init__(spark, client, read)
        self._frames = frames
        self._held = held

    def keep(self, rows: DataFrame) -> DataFrame:
        """The rows of Spark's own plan as they are now. Its tables are locked for it."""
        with own_errors():
            made = self._frames.kept(rows._jdf, self._block)  # noqa: SLF001 - no other way to change a plan
        return self._held.noticed(made, rows)

    def hold(self, rows: DataFrame) -> DataFrame:
        """The same rows, of files that were chosen in this transaction."""
        return self._held.noticed(self._frames.held(rows._jdf, self._block), rows)  # noqa: SLF001 - as above

    def abort_quietly(self) -> bool:
        """End it: nothing will be read in it."""
        self._block.end()
        return True


def _collect(held: HeldFrames, closing: Event) -> None:
    while not closing.wait(_POLL_S):
        if held.is_worth_a_look:
            held.is_worth_a_look = False
            try:
                held.look()
            except _GONE:
                return
