"""Runs each kind of statement: Hive's own here, all others by Spark, in the session's transactions."""

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.table import AcidTable, HiveColumn
from metastore.client import DomainClient
from metastore.client.constraints import drop_constraint
from metastore.client.partitions import partition_places
from metastore.errors import NoSuchObjectError
from metastore.files import Files
from metastore.ids import TableName, table_name
from metastore.spark.commands import admin, compactions
from metastore.spark.commands.constraints import add_constraints, require_sound
from metastore.spark.commands.convert import convert
from metastore.spark.jvm.compiled import catalog_object
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.sql.parsing import hives_own, without_comments
from metastore.spark.sql.spellings import cascaded, emptied, in_sparks_words
from metastore.spark.sql.statements import (
    AbortCompactions,
    AbortTransactions,
    AddConstraints,
    Compact,
    Convert,
    DropConstraint,
    Show,
    ShowCompactions,
    Statement,
    TableRef,
)
from metastore.spark.txn.blocks import own_errors
from metastore.spark.txn.transactions import Transactions


class Runner:
    """Runs the statements of a session."""

    def __init__(self, spark: SparkSession, client: DomainClient, files: Files, txns: Transactions) -> None:
        self.spark = spark
        self.client = client
        self.files = files
        self.txns = txns
        self._statements = catalog_object(spark, "extension.Statements")

    def run(self, text: str) -> DataFrame:
        """Run a statement; a write answers a single row with the column ``rows``. Raises: as ``AcidSession.sql``."""
        text = without_comments(text)
        if (own := hives_own(text)) is not None:
            return self._operate(own)
        if (of_all := emptied(text)) is not None and self.lookup(of_all[0]).kind is TableKind.FULL_ACID:
            text = of_all[1]
        cascade = cascaded(text)
        text, created = in_sparks_words(text, self._columns)
        if created is not None:
            columns = [HiveColumn(name, kind) for name, kind in created.types.items()]
            require_sound(self.spark, self._name(created.table), columns, created.constraints)
        with own_errors():
            kind = self._statements.kind(self.spark._jsparkSession, text)  # noqa: SLF001 - PySpark shows no other way
        if kind == "query":
            with own_errors():
                return self.txns.pinned(self.spark.sql(text))
        answer = self.txns.retrying(lambda: self._run_once(kind, text))
        if cascade is not None:
            self._cascade(self.lookup(cascade[0]).name)
        return answer

    def _run_once(self, kind: str, text: str) -> DataFrame:
        answers: list[DataFrame] = []
        rows = self.counted(lambda: answers.append(self.spark.sql(text)))
        if rows is None and kind == "other":
            return answers[0]
        return admin.one_row(self.spark, "rows", rows or 0)

    def counted(self, write: Callable[[], object]) -> int | None:
        """How many rows ``write`` changed; None where it wrote no transactional table.

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

    def _cascade(self, name: TableName) -> None:
        """Give the partitions the columns that the table has now."""
        table = self.client.get_table(name.db, name.table)
        self.client.alter_table_with_cascade(name.db, name.table, table, True)  # noqa: FBT003 - Thrift's

    def _operate(self, statement: Statement) -> DataFrame:
        match statement:
            case Compact():
                return compactions.compact(self.spark, self.client, self.lookup(statement.table), statement)
            case ShowCompactions():
                return compactions.show(self.spark, self.client, statement)
            case AbortCompactions(ids=ids):
                return compactions.abort(self.spark, self.client, ids)
            case Show(what=what):
                return admin.show(self.spark, self.client, what)
            case AbortTransactions(txn_ids=ids):
                return admin.abort(self.spark, self.client, ids)
            case Convert() | AddConstraints() | DropConstraint():
                return self._define(statement)

    def _define(self, statement: Convert | AddConstraints | DropConstraint) -> DataFrame:
        table = self.lookup(statement.table)
        with self.txns.exclusively(table):
            match statement:
                case Convert(properties=properties):
                    places = [place.location for place in partition_places(self.client, table)]
                    convert(self.client, self.files, Hadoop(self.spark), table, places, properties)
                case AddConstraints(constraints=constraints, column=column):
                    add_constraints(self.spark, self.client, table, constraints, column)
                case DropConstraint(name=name):
                    drop_constraint(self.client, table.name, name)
        self.spark.catalog.refreshTable(f"{table.name.db}.{table.name.table}")
        return admin.one_row(self.spark, "rows", 0)

    def lookup(self, ref: TableRef) -> AcidTable:
        """The table of that name. Raises: NoSuchObjectError."""
        name = self._name(ref)
        try:
            return AcidTable.of(name, self.client.get_table(name.db, name.table))
        except NoSuchObjectError:
            raise NoSuchObjectError(f"Table {ref} does not exist in the metastore at {self.client.uri}.") from None

    def _columns(self, ref: TableRef) -> Sequence[str]:
        table = self.lookup(ref)
        return [*(column.name for column in table.columns), *table.partition_names]

    def _name(self, ref: TableRef) -> TableName:
        return table_name(ref.db or self.spark.catalog.currentDatabase(), ref.table)
