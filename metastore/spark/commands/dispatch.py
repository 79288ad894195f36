"""Runs each kind of statement: ours in a transaction, over snapshots of the tables that it reads; others by Spark."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp, parse_one

from metastore.acid_tables.table import AcidTable, TableKind
from metastore.client import DomainClient
from metastore.client.lock_plan import Output, target_of
from metastore.client.partitions import partition_places
from metastore.errors import AlreadyExistsError, InvalidOperationError, TxnAbortedError
from metastore.files import Files
from metastore.ids import TableName, table_name
from metastore.spark.commands import admin, compactions, insert
from metastore.spark.commands.columns import alter_columns
from metastore.spark.commands.constraints import add_constraints, drop_constraint
from metastore.spark.commands.convert import convert
from metastore.spark.commands.create import create_like, create_table, drop_created, filled, filling_locks
from metastore.spark.commands.delete import delete
from metastore.spark.commands.lookup import Tables
from metastore.spark.commands.merge import merge
from metastore.spark.commands.multi_insert import multi_insert
from metastore.spark.commands.truncate import truncate
from metastore.spark.commands.update import update
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.jvm.hive_client import SparksHiveClient
from metastore.spark.read.plain_reads import checked_sql, require_parsed
from metastore.spark.sql.binding import Resolve, bound_sql, names_row_id
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.effects import kinds_of, queries_of
from metastore.spark.sql.parsing import parse
from metastore.spark.sql.statements import (
    AbortCompactions,
    AbortTransactions,
    AddColumns,
    AddConstraints,
    ChangeColumn,
    Compact,
    Convert,
    CreateLike,
    CreateTable,
    Delete,
    DropColumns,
    DropConstraint,
    Insert,
    Merge,
    MultiInsert,
    PassThrough,
    PlainOnly,
    Query,
    ReplaceColumns,
    Show,
    ShowCompactions,
    Statement,
    TableRef,
    Truncate,
    Update,
)
from metastore.spark.txn.spark_txn import Work
from metastore.spark.txn.transactions import Transactions


class Runner:
    """Runs the statements of a session."""

    def __init__(
        self, spark: SparkSession, client: DomainClient, files: Files, tables: Tables, txns: Transactions
    ) -> None:
        self.spark = spark
        self.client = client
        self.hive = SparksHiveClient(spark, client)
        self.files = files
        self.tables = tables
        self.txns = txns

    def run(self, text: str) -> DataFrame:
        """Run a statement; a write answers a single row with the column ``rows``. Raises: as ``AcidSession.sql``."""
        statement = parse(text, self.computed)
        if self._is_sparks(statement):
            return self.spark.sql(text)
        match statement:
            case Query(tree=tree):
                return self._query(tree, text)
            case Insert() if self.tables.lookup(statement.table).kind is TableKind.PLAIN:
                return self._run_over(statement.query, statement.over, text)
            case Insert() | MultiInsert() | Update() | Delete() | Merge() | Truncate():
                return self._rows(self._change(statement))
            case (
                CreateTable()
                | CreateLike()
                | Convert()
                | AddConstraints()
                | DropConstraint()
                | AddColumns()
                | ChangeColumn()
                | ReplaceColumns()
                | DropColumns()
            ):
                return self._rows(self._define(statement))
            case Compact() | ShowCompactions() | AbortCompactions() | Show() | AbortTransactions():
                return self._operate(statement)
            case PlainOnly(table=ref, reason=reason):
                raise InvalidOperationError(f"{ref} is transactional. {reason}")
            case PassThrough(tree=tree, takes=replaced):
                if replaced is not None:
                    self.txns.require_unread(
                        [(replaced.db or self.spark.catalog.currentDatabase().lower(), replaced.table)]
                    )
                return self._pass_through(tree, text)

    def _operate(self, statement: Compact | ShowCompactions | AbortCompactions | Show | AbortTransactions) -> DataFrame:
        match statement:
            case Compact():
                return compactions.compact(self.spark, self.client, self.tables.lookup(statement.table), statement)
            case ShowCompactions():
                return compactions.show(self.spark, self.client, statement)
            case AbortCompactions(ids=ids):
                return compactions.abort(self.spark, self.client, ids)
            case Show(what=what):
                return admin.show(self.spark, self.client, what)
            case AbortTransactions(txn_ids=ids):
                return admin.abort(self.spark, self.client, ids)

    def _rows(self, count: int) -> DataFrame:
        return admin.one_row(self.spark, "rows", count)

    def _define(
        self,
        statement: CreateTable
        | CreateLike
        | Convert
        | AddConstraints
        | DropConstraint
        | AddColumns
        | ChangeColumn
        | ReplaceColumns
        | DropColumns,
    ) -> int:
        if isinstance(statement, CreateTable):
            return self._create(statement)
        if isinstance(statement, CreateLike):
            source = self.tables.lookup(statement.source).name
            create_like(self.client, self._named(statement.table), source, statement, self.client.user)
            return 0
        table = self.tables.lookup(statement.table)
        with self.txns.exclusively(table):
            match statement:
                case Convert(properties=properties):
                    convert(self.client, self.files, Hadoop(self.spark), table, self._locations(table), properties)
                case AddColumns() | ChangeColumn() | ReplaceColumns() | DropColumns():
                    alter_columns(self.client, self.files, table, self._locations(table), statement)
                case AddConstraints(constraints=constraints, column=column):
                    add_constraints(self.spark, self.client, table, constraints, column)
                case DropConstraint(name=name):
                    drop_constraint(self.client, table, name)
        self.hive.run(lambda: self.spark.catalog.refreshTable(f"{table.name.db}.{table.name.table}"))
        return 0

    def _locations(self, table: AcidTable) -> list[str]:
        return [place.location for place in partition_places(self.client, table)]

    def _query(self, tree: exp.Expr, text: str) -> DataFrame:
        acid_tables = self.tables.acid_tables(tree)
        if self.txns.keeps_plans and _is_sparks_own(tree, acid_tables):
            return self.txns.keep(SparkSession.sql(self.spark, text))  # not spark.sql, which may be watched
        if not acid_tables:
            return checked_sql(self.spark, text)
        require_parsed(self.spark, text)
        return self.txns.reading(acid_tables, lambda work: self._select(work, tree))

    def _select(self, work: Work, tree: exp.Expr) -> DataFrame:
        with self.tables.views(work, row_id=names_row_id(tree)) as resolve:
            return checked_sql(self.spark, bound_sql(tree, resolve))

    def _pass_through(self, tree: exp.Expr | None, text: str) -> DataFrame:
        """Run Spark's own statement: CREATE TABLE ... AS of a plain table may read ours, views and caches may not."""
        match tree:
            case exp.Create(kind="TABLE") if tree.expression is not None:
                return self._run_over(tree.expression, lambda query: _with_query(tree, query), text)
            case exp.Create() | exp.Cache() if self.tables.acid_tables(tree):
                what = "cached" if isinstance(tree, exp.Cache) else "seen through a view"
                raise InvalidOperationError(
                    f"A transactional table cannot be {what} by Spark itself, which does not know of deleted rows. "
                    "session.sql(...) and session.table(...) give frames of a snapshot, for cache() or "
                    "createOrReplaceTempView(...)."
                )
        return self.hive.run(lambda: self.spark.sql(text))

    def _run_over(self, query: exp.Expr, statement: Callable[[str], str], text: str) -> DataFrame:
        """Let Spark run its own statement over snapshots of the transactional tables that its query reads.

        ``statement``: makes the statement's text with another query in it.
        """

        def run(work: Work) -> DataFrame:
            with self.tables.views(work, row_id=names_row_id(query)) as resolve:
                bound = bound_sql(query, resolve)
                checked_sql(self.spark, bound)
                return self.spark.sql(statement(bound))

        tables = self.tables.acid_tables(query)
        return self.txns.reading(tables, run) if tables else self.spark.sql(text)

    def change(self, text: str) -> int:
        """Run one UPDATE, DELETE or MERGE; returns the number of changed rows. Raises: as ``AcidSession.sql``."""
        statement = parse(text, self.computed)
        if not isinstance(statement, Update | Delete | Merge):
            raise InvalidOperationError(f"This is not one statement: {text}")
        return self._change(statement)

    def _change(self, statement: Insert | MultiInsert | Update | Delete | Merge | Truncate) -> int:
        return self.txns.retrying(lambda: self._change_once(statement))

    def _change_once(self, statement: Insert | MultiInsert | Update | Delete | Merge | Truncate) -> int:
        if isinstance(statement, MultiInsert):
            return self._insert_many(statement)
        target, sources = self.tables.lookup(statement.table), self.tables.acid_tables(*queries_of(statement))

        def run(work: Work) -> int:
            with self.tables.views(work) as resolve:
                return _run(work, target, statement, resolve)

        return self.txns.writing(target, kinds_of(statement), sources, run)

    def _is_sparks(self, statement: Statement) -> bool:
        """Whether a statement that may be ours touches no transactional table."""
        match statement:
            case MultiInsert(inserts=inserts):
                return all(
                    self.tables.lookup(into.table).kind is TableKind.PLAIN for into in inserts
                ) and not self.tables.acid_tables(*queries_of(statement))
            case PlainOnly() | AddColumns() | ChangeColumn() | ReplaceColumns() | DropColumns() | Truncate():
                return self.tables.acid_table(statement.table) is None
            case CreateLike(source=source):
                return self.tables.acid_table(source) is None
        return False

    def _insert_many(self, statement: MultiInsert) -> int:
        targets = [self.tables.lookup(into.table) for into in statement.inserts]
        outputs = [
            Output(target_of(table, is_written=True), kind)
            for into, table in zip(statement.inserts, targets, strict=True)
            for kind in kinds_of(into)
        ]

        def run(work: Work) -> int:
            with self.tables.views(work) as resolve:
                return multi_insert(work, statement, targets, resolve)

        return self.txns.writing_all(outputs, self.tables.acid_tables(*queries_of(statement)), run)

    def _named(self, new: TableRef) -> TableName:
        return table_name(new.db or self.spark.catalog.currentDatabase(), new.table)

    def _create(self, statement: CreateTable) -> int:
        name = self._named(statement.table)
        if statement.query is None:
            create_table(self.client, name, statement, self.client.user, self.spark)
            return 0
        if self.txns.block is not None:
            raise InvalidOperationError(
                "A table is created at once, whatever becomes of a block: inside a transaction "
                "or snapshot block use INSERT INTO a table that was created before."
            )
        if self.tables.exists(name):
            if statement.if_not_exists:
                return 0
            raise AlreadyExistsError(f"Table {name} already exists.")
        rows = self.run(statement.query.sql(DIALECT))
        columns = tuple((field.name.lower(), field.dataType.simpleString(), None) for field in rows.schema.fields)
        return self._create_filled(name, replace(statement, columns=columns), rows)

    def _create_filled(self, name: TableName, statement: CreateTable, rows: DataFrame) -> int:
        created: list[tuple[Work, AcidTable]] = []

        def run(work: Work) -> int:
            if not create_table(self.client, name, statement, self.client.user, self.spark):
                return 0
            table = self.tables.lookup(TableRef(name.db, name.table))
            created.append((work, table))
            return filled(work, table, lambda: insert.append(work, table, rows))

        try:
            return self.txns.writing_all(filling_locks(name, statement), [], run)
        except TxnAbortedError as lost:  # it is certain that nothing was committed
            for work, table in created:
                drop_created(work, table, lost)
            raise

    def computed(self, expressions: Sequence[str]) -> Sequence[object] | None:
        """The values of expressions without columns; None where Spark cannot evaluate them."""
        try:
            return self.spark.sql(f"SELECT {', '.join(expressions)}").first()
        except PySparkException:
            return None


def _run(work: Work, table: AcidTable, statement: Insert | Update | Delete | Merge | Truncate, resolve: Resolve) -> int:
    """Run a statement; returns the number of rows that it inserted, changed and removed."""
    match statement:
        case Insert():
            return insert.insert_all(work, table, [statement], resolve)
        case Update():
            return update(work, table, statement, resolve)
        case Delete():
            return delete(work, table, statement, resolve)
        case Merge():
            return merge(work, table, statement, resolve)
        case Truncate():
            return truncate(work, table, statement)


def _is_sparks_own(tree: exp.Expr, tables: Sequence[AcidTable]) -> bool:
    """Whether Spark's own SQL reads all of it right in a session with the catalog, and refuses the past as we do."""
    return tree.find(exp.Version) is None and all(table.kind is TableKind.FULL_ACID for table in tables)


def _with_query(tree: exp.Expr, query: str) -> str:
    """The text of a CREATE TABLE ... AS with another query."""
    changed = tree.copy()
    changed.set("expression", parse_one(query, dialect=DIALECT))
    return str(changed.sql(DIALECT))
