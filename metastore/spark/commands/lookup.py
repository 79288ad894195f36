"""The tables that a statement names, and their snapshots as temporary views that Spark can query."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from metastore.acid_tables.pruning import Restriction
from metastore.acid_tables.table import AcidTable, TableKind
from metastore.acid_tables.time_travel import AsOf
from metastore.client import DomainClient
from metastore.errors import NoSuchObjectError
from metastore.ids import TableName, table_name
from metastore.spark.read.reader import with_row_id
from metastore.spark.read.time_travel import version_of
from metastore.spark.sql.binding import Resolve, bound_sql
from metastore.spark.sql.pruning import restriction
from metastore.spark.sql.statements import TableRef
from metastore.spark.tables.row_id import ROW_ID_COLUMN
from metastore.spark.txn.spark_txn import Work


class Tables:
    """The tables of a session, by name."""

    def __init__(self, spark: SparkSession, client: DomainClient) -> None:
        self.spark = spark
        self.client = client

    def lookup(self, ref: TableRef) -> AcidTable:
        """The table of that name. Raises: NoSuchObjectError."""
        table = self._find(ref)
        if table is None:
            raise NoSuchObjectError(f"Table {ref} does not exist in the metastore at {self.client.uri}.")
        return table

    def exists(self, name: TableName) -> bool:
        """Whether there is a table or a view of that name."""
        return self._find(TableRef(name.db, name.table)) is not None

    def _find(self, ref: TableRef) -> AcidTable | None:
        name = table_name(ref.db or self.spark.catalog.currentDatabase(), ref.table)
        try:
            return AcidTable.of(name, self.client.get_table(name.db, name.table))
        except NoSuchObjectError:
            return None

    def acid_table(self, ref: TableRef) -> AcidTable | None:
        """The transactional table of that name; None for a temporary view, another table, or no table at all."""
        if ref.db is None and self._is_temp_view(ref.table):
            return None
        table = self._find(ref)
        return table if table is not None and table.kind is not TableKind.PLAIN else None

    def acid_tables(self, *trees: exp.Expr) -> list[AcidTable]:
        """The transactional tables that queries name."""
        tables: dict[TableName, AcidTable] = {}

        def note(ref: TableRef) -> None:
            if (table := self.acid_table(ref)) is not None:
                tables[table.name] = table

        for tree in trees:
            bound_sql(tree, note)
        return list(tables.values())

    @contextmanager
    def views(self, work: Work, *, row_id: bool = False) -> Iterator[Resolve]:
        """Temporary views over snapshots of the tables that a statement reads; they are dropped once it is analysed."""
        views: dict[tuple[TableName, AsOf | None, Restriction | None], str] = {}

        def resolve(ref: TableRef) -> str | None:
            table = self.acid_table(ref)
            if table is None:
                return None
            key = (table.name, version_of(self.spark, ref), restriction(ref.conditions, table.partition_keys))
            if key not in views:
                views[key] = f"__snapshot_{uuid4().hex}"
                has_ids = row_id and table.kind is TableKind.FULL_ACID
                rows = user_rows(work, table, row_id=has_ids, as_of=key[1], where=key[2])
                rows.createOrReplaceTempView(views[key])
            return views[key]

        try:
            yield resolve
        finally:
            for view in views.values():
                self.spark.catalog.dropTempView(view)

    def _is_temp_view(self, name: str) -> bool:
        catalog = self.spark._jsparkSession.sessionState().catalog()  # noqa: SLF001 - PySpark shows no other way
        return bool(catalog.getTempView(name).isDefined())


def user_rows(
    work: Work, table: AcidTable, *, row_id: bool = False, as_of: AsOf | None = None, where: Restriction | None = None
) -> DataFrame:
    """A table's rows with the columns that users see; rows of partitions that ``where`` leaves out may be missing."""
    rows = work.frame(table, row_ids=row_id, as_of=as_of, where=where)
    return with_row_id(rows) if row_id else rows


def sparks_rows(spark: SparkSession, name: TableName, *, row_id: bool, where: str | None) -> DataFrame:
    """A table's rows as Spark's own SQL reads them, in a session with the catalog."""
    rows = SparkSession.table(spark, f"`{name.db}`.`{name.table}`")  # not spark.table, which may be watched
    if row_id:
        rows = rows.select("*", ROW_ID_COLUMN)
    return rows if where is None else rows.where(where)
