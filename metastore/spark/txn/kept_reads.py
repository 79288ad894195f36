"""Frames keep their snapshot in the session's catalog.

Rule: the transaction is one of the JVM's (``KeptRead.java``), which alone knows what can still read in it, and ends it.
So every statement of the session, by ``spark.sql`` too, sees the session's own reads. What Python has dropped it still
refers to, in cycles, until its own garbage collector runs: so that runs soon after.
"""

import copy
import gc
import weakref
from collections.abc import Iterable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from metastore.spark.jvm.compiled import catalog_object, java_object, jvm_of
from metastore.spark.txn.blocks import OpenTransaction, own_errors

_POLL_S = 0.5
_GONE = (Py4JError, PySparkException, OSError)
"""The JVM or its Spark is gone, and with it everything that could read."""


class KeptReads:
    """The read transactions of a session, which live as long as their frames."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._frames = catalog_object(spark, "extension.Frames")
        self._session: Any = spark._jsparkSession  # noqa: SLF001 - PySpark shows no other way
        self._owner = self._frames.owner(self._session)
        self._is_worth_a_look = Event()
        """Python has dropped a frame and all frames made from it: the garbage collectors should look."""
        self._closing = Event()
        self._watcher: Thread | None = None

    def begin(self, *, of_block: bool = False) -> "KeptRead":
        """A new one, which is opened when something is read in it. ``of_block``: by several frames."""
        if self._watcher is None:
            self._watcher = Thread(target=self._collect, name="acid-drops", daemon=True)
            self._watcher.start()
        with own_errors():
            return KeptRead(self._frames.read(self._session, self._owner, of_block), self)

    def kept(self, rows: DataFrame, read: Any) -> DataFrame:
        """The rows of Spark's own plan in ``read``, whose tables are locked for it."""
        with own_errors():
            return self._noticed(self._frames.kept(rows._jdf, read), rows)  # noqa: SLF001 - no other way to change a plan

    def held(self, rows: DataFrame, read: Any) -> DataFrame:
        """The rows of files that were chosen in ``read``."""
        return self._noticed(self._frames.held(rows._jdf, read), rows)  # noqa: SLF001 - as above

    def give_way(self, tables: Iterable[tuple[str, str]]) -> None:
        """Raise InvalidOperationError for a table that the session may still read; drops unused frames first."""
        with own_errors():
            self._frames.giveWay(self._session, [f"{db}.{table}" for db, table in tables])

    def look_soon(self) -> None:
        """A statement has failed: until the garbage collector comes, its error's traceback refers to frames."""
        self._is_worth_a_look.set()

    def close(self) -> None:
        """End all."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()
        with suppress(*_GONE):
            self._owner.close()

    def _noticed(self, made: Any, of: DataFrame) -> DataFrame:
        """The frame of the JVM's ``made``; it is noticed when Python drops it and all frames made from it."""
        session = copy.copy(of.sparkSession)
        weakref.finalize(session, self._is_worth_a_look.set).atexit = False
        return DataFrame(made, session)

    def _collect(self) -> None:
        while not self._closing.wait(_POLL_S):
            if self._is_worth_a_look.is_set():
                self._is_worth_a_look.clear()
                try:
                    self._look()
                except _GONE:
                    return

    def _look(self) -> None:
        """Let both garbage collectors, Python's and the JVM's, look for dropped frames."""
        gc.collect()
        waiting = getattr(jvm_of(self._spark)._gateway_client, "finalizer_deque", ())  # noqa: SLF001 - Py4J tells within a second
        with suppress(IndexError):
            while waiting and isinstance(waiting[-1], tuple):
                client, target = waiting.pop()
                client.garbage_collect_object(target, False)  # noqa: FBT003 - Py4J's signature
        java_object(self._spark, "HeldSnapshots").look(self._session)


class KeptRead(OpenTransaction):
    """A read transaction of frames."""

    def __init__(self, read: Any, reads: KeptReads) -> None:
        super().__init__(read)
        self._reads = reads

    def keep(self, rows: DataFrame) -> DataFrame:
        """The rows of Spark's own plan as they are now. Its tables are locked for it."""
        return self._reads.kept(rows, self.java)

    def hold(self, rows: DataFrame) -> DataFrame:
        """As ``OpenTransaction.hold``."""
        return self._reads.held(rows, self.java)

    def end(self) -> None:
        """End it: nothing will be read in it."""
        self.java.end()
