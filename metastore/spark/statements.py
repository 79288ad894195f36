"""A session's statements, which Spark runs: again after a lost conflict, and with the number of changed rows."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient
from metastore.errors import NoSuchObjectError
from metastore.ids import table_name
from metastore.spark.jvm.compiled import catalog_object
from metastore.spark.txn.blocks import own_errors
from metastore.spark.txn.transactions import Transactions


class Runner:
    """A runner of a session's statements."""

    def __init__(self, spark: SparkSession, client: DomainClient, txns: Transactions) -> None:
        self.spark = spark
        self.client = client
        self.txns = txns
        self._statements = catalog_object(spark, "extension.Statements")

    def run(self, text: str) -> DataFrame:
        """Run a statement; a write answers a single row with the column ``rows``. Raises: as ``AcidSession.sql``."""
        with own_errors():
            kind = self._statements.kind(self.spark._jsparkSession, text)  # noqa: SLF001 - PySpark shows no other way
        if kind == "query":
            with own_errors():
                return self.txns.pinned(self.spark.sql(text))
        return self.txns.retrying(lambda: self._run_once(kind, text))

    def _run_once(self, kind: str, text: str) -> DataFrame:
        answers: list[DataFrame] = []
        rows = self.counted(lambda: answers.append(self.spark.sql(text)))
        if rows is None and kind == "other":
            return answers[0]
        return self.spark.createDataFrame([(rows or 0,)], StructType([StructField("rows", LongType())]))

    def counted(self, write: Callable[[], object]) -> int | None:
        """Return how many rows ``write`` changed; None where it wrote no transactional table.

        Raises: InvalidOperationError in a snapshot block; the connector's errors as our own.
        """
        self.txns.require_writable()
        self._statements.count()
        try:
            with own_errors():
                write()
        finally:
            rows = self._statements.counted()
        return None if rows is None else int(rows)

    def lookup(self, name: str) -> AcidTable:
        """Return the table ``db.table`` or ``table``, quoted or not. Raises: NoSuchObjectError."""
        db, _, table = name.replace("`", "").lower().rpartition(".")
        found = table_name(db or self.spark.catalog.currentDatabase().replace("`", ""), table)
        try:
            return AcidTable.of(found, self.client.get_table(found.db, found.table))
        except NoSuchObjectError:
            raise NoSuchObjectError(f"Table {name} does not exist in the metastore at {self.client.uri}.") from None
