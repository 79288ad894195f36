"""``acid(spark)``: ACID tables from PySpark, in SQL or DataFrames; each statement or block is one transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from metastore.client import MetastoreClient, TxnManager
from metastore.client.lock_plan import Kind, Output, Target, statement_locks
from metastore.errors import InvalidOperationError, NoSuchObjectError
from metastore.files import Files
from metastore.ids import TableName, table_name
from metastore.spark import admin, dml
from metastore.spark.binding import Resolve, bound_sql
from metastore.spark.create import create_table
from metastore.spark.leases import ReadLeases
from metastore.spark.statements import (
    DIALECT,
    AbortTransactions,
    Compact,
    CreateTable,
    Delete,
    Insert,
    Merge,
    PassThrough,
    Query,
    Show,
    Statement,
    TableRef,
    Truncate,
    Update,
    parse,
)
from metastore.spark.tables import AcidTable, TableKind
from metastore.spark.work import Work
from metastore.txns.rules import TxnType


class AcidSession:
    """ACID reads and writes of one Spark session. Use it from one thread; ``close`` ends its read transactions."""

    def __init__(self, spark: SparkSession, uri: str | None = None) -> None:
        self.spark = spark
        self.client = MetastoreClient(uri or _configured_uri(spark))
        self.files = Files()
        self._manager = TxnManager(self.client)
        self._leases = ReadLeases()
        self._block: Work | None = None

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Close the session."""
        self.close()

    def close(self) -> None:
        """End the transactions of all reads and the connection. DataFrames read before lose their protection."""
        self._leases.close()
        self.client.close()

    # -- reading ---------------------------------------------------------------------------------------------------

    def table(self, name: str, *, as_of_write_id: int | None = None, row_id: bool = False) -> DataFrame:
        """The table's rows in one snapshot; ``row_id`` adds ``__write_id``, ``__bucket``, ``__row_id``.

        The snapshot's files are kept from the Cleaner for as long as the frame or one derived from it is in use.
        Raises: NoSuchObjectError, InvalidOperationError, NotEnoughHistoryError.
        """
        table = self._lookup(_ref(name))
        table.require(TableKind.FULL_ACID, *([] if row_id else [TableKind.INSERT_ONLY]), action="Reading a snapshot")
        return self._reading([table], lambda work: work.frame(table, row_ids=row_id, as_of_write_id=as_of_write_id))

    def sql(self, text: str) -> DataFrame:
        """Run one statement: ours in a transaction (module ``statements``), any other by Spark, unchanged.

        Writes answer one row with the column ``rows``.
        Raises: InvalidOperationError for a statement that cannot be done right, TxnAbortedError for a lost
            race (the message names the winner), LockNotAcquiredError.
        """
        return self._run(parse(text), text)

    # -- writing ---------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: DataFrame) -> int:
        """Append ``rows``, matched to the table's columns by name; returns how many."""
        table = self._lookup(_ref(name))
        return self._writing(table, [Kind.INSERT], [], lambda work: dml.insert(work, table, dml.by_name(rows, table)))

    def overwrite(self, name: str, rows: DataFrame, partition: Mapping[str, object] | None = None) -> int:
        """Replace the table, or one partition, or the partitions that ``rows`` has rows for; returns how many."""
        fixed = {key.lower(): value for key, value in (partition or {}).items()}
        table = self._lookup(_ref(name))
        return self._writing(table, [Kind.INSERT_OVERWRITE], [], lambda work: dml.overwrite(
            work, table, dml.by_name(dml.with_constants(rows, table, fixed), table), fixed))

    def update(self, name: str, set: Mapping[str, str], where: str | None = None) -> int:  # noqa: A002 - SQL's word
        """UPDATE: ``set`` maps columns to SQL expressions; returns the number of rows changed."""
        changes = ", ".join(f"{column} = {value}" for column, value in set.items())
        return self._changed(f"UPDATE {name} SET {changes}" + (f" WHERE {where}" if where else ""))

    def delete(self, name: str, where: str | None = None) -> int:
        """DELETE; returns the number of rows removed."""
        return self._changed(f"DELETE FROM {name}" + (f" WHERE {where}" if where else ""))

    def merge(self, into: str, using: DataFrame | str, on: str, whens: Sequence[str], *, alias: str = "t",
              source_alias: str = "s") -> int:
        """MERGE: ``whens`` are the WHEN clauses as SQL; target and source are called ``t`` and ``s``.

        Returns the number of rows updated, deleted and inserted.
        """
        view = None if isinstance(using, str) else f"__source_{uuid4().hex}"
        if view is not None:
            using.createOrReplaceTempView(view)  # type: ignore[union-attr]
        try:
            return self._changed(f"MERGE INTO {into} AS {alias} USING {view or using} AS {source_alias} ON {on} "
                               + " ".join(whens))
        finally:
            if view is not None:
                self.spark.catalog.dropTempView(view)

    # -- blocks ----------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Several reads, one snapshot: everything read inside the block shows the same instant."""
        with self._transaction(TxnType.READ_ONLY) as work, self._as_block(work):
            yield self

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Several statements, one transaction: committed at the end of the block, undone when it raises.

        Statements see what earlier ones of the block wrote. Raises: TxnAbortedError when somebody else changed the same
        rows' partition and committed first.
        """
        with self._transaction(TxnType.DEFAULT) as work, self._as_block(work):
            yield self

    # -- how a statement runs --------------------------------------------------------------------------------------

    def _run(self, statement: Statement, text: str) -> DataFrame:
        match statement:
            case Query(tree=tree):
                return self._query(tree, text)
            case Insert() | Update() | Delete() | Merge() | Truncate():
                return admin.one_row(self.spark, "rows", self._change(statement))
            case CreateTable():
                return admin.one_row(self.spark, "rows", self._create(statement))
            case Compact():
                return admin.compact(self.spark, self.client, self._lookup(statement.table), statement)
            case Show(what=what):
                return admin.show(self.spark, self.client, what)
            case AbortTransactions(txn_ids=ids):
                return admin.abort(self.spark, self.client, ids)
            case PassThrough():
                return self.spark.sql(text)

    def _query(self, tree: exp.Expression, text: str) -> DataFrame:
        acid_tables = self._acid_tables(tree)
        if not acid_tables:
            return self.spark.sql(text)
        return self._reading(acid_tables, lambda work: self._select(work, tree))

    def _select(self, work: Work, tree: exp.Expression) -> DataFrame:
        with self._views(work) as resolve:
            return self.spark.sql(bound_sql(tree, resolve))

    def _changed(self, text: str) -> int:
        statement = parse(text)
        if not isinstance(statement, Update | Delete | Merge):
            raise InvalidOperationError(f"This is not one statement: {text}")
        return self._change(statement)

    def _change(self, statement: Insert | Update | Delete | Merge | Truncate) -> int:
        target, sources = self._lookup(statement.table), self._acid_tables(*_queries(statement))

        def run(work: Work) -> int:
            with self._views(work) as resolve:
                return dml.run(work, target, statement, resolve)

        return self._writing(target, _kinds(statement), sources, run)

    def _create(self, statement: CreateTable) -> int:
        name = table_name(statement.table.db or self.spark.catalog.currentDatabase(), statement.table.table)
        if statement.query is None:
            create_table(self.client, name, statement, self.client.user)
            return 0
        rows = self.sql(statement.query.sql(DIALECT))
        columns = tuple((field.name.lower(), field.dataType.simpleString(), None) for field in rows.schema.fields)
        if create_table(self.client, name, replace(statement, columns=columns), self.client.user):
            return self.insert(f"{name.db}.{name.table}", rows)
        return 0

    def _reading(self, tables: Sequence[AcidTable], read: Callable[[Work], DataFrame]) -> DataFrame:
        """Run a read in the block's transaction, or in one of its own that lives as long as the frame."""
        locks = statement_locks(inputs=[_target(table) for table in tables])
        if self._block is not None:
            self._block.txn.lock(locks)
            return read(self._block)
        work = self._open(TxnType.READ_ONLY)
        try:
            work.txn.lock(locks)
            frame = read(work)
        except BaseException:
            work.txn.abort_quietly()
            raise
        return self._leases.protect(frame, work.release)

    def _writing(self, target: AcidTable, kinds: Sequence[Kind], sources: Sequence[AcidTable],
                 write: Callable[[Work], int]) -> int:
        """Run a write in the block's transaction, or in one of its own that commits at once."""
        outputs = [Output(_target(target, is_written=True), kind) for kind in kinds]
        locks = statement_locks([_target(table) for table in sources], outputs)
        if self._block is not None:
            self._block.txn.lock(locks)
            return write(self._block)
        with self._transaction(TxnType.DEFAULT) as work:
            work.txn.lock(locks)
            return write(work)

    @contextmanager
    def _transaction(self, kind: TxnType) -> Iterator[Work]:
        work = self._open(kind)
        try:
            yield work
        except BaseException:
            work.abort()
            raise
        work.commit()

    def _open(self, kind: TxnType) -> Work:
        agent = f"spark-{self.spark.sparkContext.applicationId}"
        return Work(self.spark, self.client, self.files, self._manager.open(agent=agent, kind=kind))

    @contextmanager
    def _as_block(self, work: Work) -> Iterator[None]:
        if self._block is not None:
            raise InvalidOperationError("A transaction or snapshot block is open already; blocks do not nest.")
        self._block = work
        try:
            yield
        finally:
            self._block = None

    @contextmanager
    def _views(self, work: Work) -> Iterator[Resolve]:
        """Temporary views over the snapshots of the tables that a statement reads, gone once it is analysed."""
        views: dict[TableName, str] = {}

        def resolve(ref: TableRef) -> str | None:
            table = self._acid_table(ref)
            if table is None:
                return None
            if table.name not in views:
                views[table.name] = f"__snapshot_{uuid4().hex}"
                work.frame(table).createOrReplaceTempView(views[table.name])
            return views[table.name]

        try:
            yield resolve
        finally:
            for view in views.values():
                self.spark.catalog.dropTempView(view)

    # -- tables ----------------------------------------------------------------------------------------------------

    def _lookup(self, ref: TableRef) -> AcidTable:
        table = self._find(ref)
        if table is None:
            raise NoSuchObjectError(f"Table {ref} does not exist in the metastore at {self.client.uri}.")
        return table

    def _find(self, ref: TableRef) -> AcidTable | None:
        name = table_name(ref.db or self.spark.catalog.currentDatabase(), ref.table)
        try:
            return AcidTable.of(name, self.client.get_table(name.db, name.table))
        except self.client.types.NoSuchObjectException:
            return None

    def _acid_table(self, ref: TableRef) -> AcidTable | None:
        """The transactional table of that name; None for a temporary view, another table, or no table at all."""
        if ref.db is None and self._is_temp_view(ref.table):
            return None
        table = self._find(ref)
        return table if table is not None and table.kind is not TableKind.PLAIN else None

    def _acid_tables(self, *trees: exp.Expression) -> list[AcidTable]:
        found: dict[TableName, AcidTable] = {}

        def note(ref: TableRef) -> None:
            if (table := self._acid_table(ref)) is not None:
                found[table.name] = table

        for tree in trees:
            bound_sql(tree, note)
        return list(found.values())

    def _is_temp_view(self, name: str) -> bool:
        catalog = self.spark._jsparkSession.sessionState().catalog()  # noqa: SLF001 - PySpark shows no other way
        return bool(catalog.getTempView(name).isDefined())


def _target(table: AcidTable, *, is_written: bool = False) -> Target:
    return Target(table.name.db, table.name.table, is_acid=table.kind is not TableKind.PLAIN,
                  is_dynamic=is_written and bool(table.partition_keys))


def _kinds(statement: Insert | Update | Delete | Merge | Truncate) -> list[Kind]:
    """How a statement uses its target, for the lock plan."""
    match statement:
        case Insert(overwrite=True) | Truncate():
            return [Kind.INSERT_OVERWRITE]
        case Insert():
            return [Kind.INSERT]
        case Update():
            return [Kind.UPDATE]
        case Delete():
            return [Kind.DELETE]
        case Merge(branches=branches):
            by_action = {"update": Kind.UPDATE, "delete": Kind.DELETE, "insert": Kind.MERGE_INSERT}
            return list(dict.fromkeys(by_action[branch.action] for branch in branches))


def _queries(statement: Insert | Update | Delete | Merge | Truncate) -> list[exp.Expression]:
    """The parts of a statement that may read other tables."""
    match statement:
        case Insert(query=query):
            return [query]
        case Update(assignments=assignments, where=where):
            return [*assignments.values(), *([where] if where is not None else [])]
        case Delete(where=where):
            return [where] if where is not None else []
        case Merge(source=source, on=on, branches=branches):
            conditions = [branch.condition for branch in branches if branch.condition is not None]
            return [exp.select("*").from_(source.copy()), on, *conditions]
        case Truncate():
            return []


def _ref(name: str) -> TableRef:
    """``db.table`` or ``table``, quoted or not."""
    db, _, table = name.replace("`", "").lower().rpartition(".")
    return TableRef(db or None, table)


def _configured_uri(spark: SparkSession) -> str | None:
    """The metastore of the Spark session; None leaves it to $METASTORE_URI."""
    value = spark._jsc.hadoopConfiguration().get("hive.metastore.uris")  # noqa: SLF001 - as above
    return str(value) if value else None
