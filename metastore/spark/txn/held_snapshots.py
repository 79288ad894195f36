"""DataFrames whose end the JVM reports: nothing is left that could read their files (``HeldSnapshots.java``).

Only the JVM knows. A view, a cache, an RDD or a stream of rows that was made from a frame, in Python or in SQL, refers
to the frame's plan or files there, and need not refer to anything in Python.
"""

import copy
import gc
import weakref
from contextlib import suppress
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from metastore.spark.jvm.compiled import java_object, jvm_of
from metastore.spark.jvm.messages import from_java


class HeldFrames:
    """The held frames of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.is_worth_a_look = False
        """Whether Python has dropped a frame and all frames made from it: the garbage collectors should look."""

    def hold(self, frame: DataFrame, number: int) -> DataFrame:
        """The same rows; ``ended`` has the number once nothing is left that could read them."""
        return self.noticed(self._java.hold(frame._jdf, number), frame)  # noqa: SLF001 - no other way to change a plan

    def noticed(self, made: Any, of: DataFrame) -> DataFrame:
        """The frame of the JVM's ``made``; it is noticed when Python drops it and all frames made from it."""
        session = copy.copy(of.sparkSession)
        weakref.finalize(session, self._dropped).atexit = False
        return DataFrame(made, session)

    def ended(self) -> list[int]:
        """The numbers of frames that nothing can read any more; each is returned once."""
        return list(from_java(self._java.ended()))

    def look(self) -> None:
        """Let both garbage collectors, Python's and the JVM's, look for dropped frames."""
        gc.collect()
        self._tell_the_jvm()
        self._java.look(self.spark._jsparkSession)  # noqa: SLF001 - as above

    def _dropped(self) -> None:
        """The garbage collector calls this: it must not wait for anything."""
        self.is_worth_a_look = True

    def _tell_the_jvm(self) -> None:
        """Tell the JVM now what Python has collected; Py4J does so within a second."""
        waiting = getattr(jvm_of(self.spark)._gateway_client, "finalizer_deque", ())  # noqa: SLF001 - as above
        with suppress(IndexError):
            while waiting and isinstance(waiting[-1], tuple):
                client, target = waiting.pop()
                client.garbage_collect_object(target, False)  # noqa: FBT003 - Py4J's signature

    @cached_property
    def _java(self) -> Any:
        return java_object(self.spark, "HeldSnapshots").another()
