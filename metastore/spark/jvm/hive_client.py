"""Spark's own Hive client, which gets transactional tables while Spark runs a statement of ours.

Rule: the metastore refuses such tables to it, since Spark would read no rows of them. DROP, DESCRIBE, ALTER and the
like need the table nevertheless. So the check is off on the client's only connection for the statement, and on again
after it. A lost connection loses the permission too.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from metastore.client import DomainClient

Result = TypeVar("Result")
_CHECK = "metastore.client.capability.check"


class _Statements:
    """The number of statements with the check off, in all sessions of the driver: they share the client."""

    def __init__(self) -> None:
        self.changing = threading.Lock()
        self.running = 0


_STATEMENTS = _Statements()


class SparksHiveClient:
    """The Hive client of a Spark session."""

    def __init__(self, spark: SparkSession, client: DomainClient) -> None:
        """``client``: ours, which knows whether the metastore checks at all."""
        self._spark, self._client = spark, client

    def run(self, statement: Callable[[], Result]) -> Result:
        """Let Spark run a statement that may need transactional tables.

        Hive's client reconnects at some statements of a session, and is refused then. So the statement runs again; it
        changes nothing twice, since the first run ended when it looked up the table.
        """
        try:
            with self._let_through():
                return statement()
        except PySparkException as refused:
            if _CHECK not in str(refused):
                raise
        with self._let_through():
            return statement()

    @contextmanager
    def _let_through(self) -> Iterator[None]:
        """Let the client get transactional tables inside the block."""
        checks = self._client.getMetaConf(_CHECK)
        hive = None if checks.lower() == "false" else self._hive()
        if hive is None:
            yield
            return
        with _STATEMENTS.changing:
            if not _STATEMENTS.running:
                hive.setMetaConf(_CHECK, "false")
            _STATEMENTS.running += 1
        try:
            yield
        finally:
            with _STATEMENTS.changing:
                _STATEMENTS.running -= 1
                if not _STATEMENTS.running:
                    hive.setMetaConf(_CHECK, checks)

    def _hive(self) -> Any:
        """Hive's client object; None where Spark has no Hive catalog."""
        shared = self._spark._jsparkSession.sharedState()  # noqa: SLF001 - PySpark shows no other way
        catalog = shared.externalCatalog().unwrapped()
        if not catalog.getClass().getSimpleName().startswith("Hive"):
            return None
        loader = catalog.client().clientLoader()
        if loader.cachedHive() is None:
            catalog.databaseExists("default")  # makes the client, which Spark creates at its first call
        return loader.cachedHive()
