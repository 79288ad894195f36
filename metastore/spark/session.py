"""``acid(spark)``: ACID tables from PySpark, in SQL or DataFrames; each statement or block is one transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from sqlglot import exp, parse_one

from metastore.client import MetastoreClient, TxnManager, WriteConflictError
from metastore.client.lock_plan import Kind, Output, statement_locks
from metastore.errors import InvalidOperationError, NoSuchObjectError
from metastore.files import Files
from metastore.ids import TableName, table_name
from metastore.spark import admin, dml
from metastore.spark.binding import Resolve, bound_sql, names_row_id
from metastore.spark.columns import alter_columns
from metastore.spark.constraints import add_constraints, drop_constraint
from metastore.spark.convert import convert
from metastore.spark.create import create_table
from metastore.spark.dialect import DIALECT
from metastore.spark.effects import kinds_of, queries_of, target_of
from metastore.spark.leases import ReadLeases
from metastore.spark.multi_insert import multi_insert
from metastore.spark.parsing import parse
from metastore.spark.past import AsOf, instant, version_of
from metastore.spark.plain_reads import checked_sql, require_no_plain_read, watch
from metastore.spark.progress import shown
from metastore.spark.reader import with_row_id
from metastore.spark.statements import (
    AbortTransactions,
    AddConstraints,
    ChangeColumn,
    Compact,
    Convert,
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
    Statement,
    TableRef,
    Truncate,
    Update,
)
from metastore.spark.streaming import BatchSink, positions, start
from metastore.spark.tables import AcidTable, TableKind
from metastore.spark.work import Work, partition_places
from metastore.telemetry.logs import get_logger
from metastore.txns.rules import TxnType
from metastore.txns.stream_rules import StreamBatch, StreamPosition

_log = get_logger(__name__)
Result = TypeVar("Result")


class AcidSession:
    """ACID reads and writes of one Spark session. Use it from one thread; ``close`` ends its read transactions."""

    def __init__(self, spark: SparkSession, uri: str | None = None, *, retries: int = 0) -> None:
        self.spark = spark
        self.retries = retries
        """How often a statement that lost a write conflict is run again."""
        self.client = MetastoreClient(uri or _configured_uri(spark))
        self.files = Files()
        self._manager = TxnManager(self.client)
        self._leases = ReadLeases()
        self._block: Work | None = None
        watch(spark)

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

    def table(self, name: str, *, as_of_write_id: int | None = None, as_of_timestamp: datetime | str | None = None,
              row_id: bool = False) -> DataFrame:
        """The table's rows in one snapshot; ``row_id`` adds Hive's ``ROW__ID`` (writeid, bucketid, rowid).

        ``as_of_timestamp``: as they were then; without a zone, in that of the Spark session. The snapshot's files are
        kept from the Cleaner for as long as the frame or one derived from it is in use, those of the past are not.
        Raises: NoSuchObjectError, InvalidOperationError, NotEnoughHistoryError.
        """
        if as_of_write_id is not None and as_of_timestamp is not None:
            raise InvalidOperationError("A table is read as of a write id, or as of a timestamp.")
        as_of = as_of_write_id if as_of_timestamp is None else instant(self.spark, as_of_timestamp)
        table = self._lookup(_ref(name))
        table.require(TableKind.FULL_ACID, *([] if row_id else [TableKind.INSERT_ONLY]), action="Reading a snapshot")
        return self._reading([table], lambda work: _shown(work, table, row_id=row_id, as_of=as_of))

    def changes(self, name: str, after: int, up_to: int | None = None) -> DataFrame:
        """What write ids above ``after`` (up to ``up_to``, or now) did to the table's rows.

        A row for each insert and delete, the columns as the row had them, with ``_operation``, ``_write_id`` and
        ``ROW__ID``; an update is a delete and an insert.
        Raises: as ``table``; NotEnoughHistoryError too when the changes have been compacted into a base.
        """
        table = self._lookup(_ref(name))
        return self._reading([table], lambda work: work.changes(table, after, up_to))

    def sql(self, text: str) -> DataFrame:
        """Run one statement: ours in a transaction (module ``statements``), any other by Spark, unchanged.

        Writes answer one row with the column ``rows``.
        Raises: InvalidOperationError for a statement that cannot be done right, WriteConflictError for a lost
            race (the message names the winner), LockNotAcquiredError.
        """
        return self._run(parse(text), text)

    # -- writing ---------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: DataFrame) -> int:
        """Append ``rows``, matched to the table's columns by name; returns how many."""
        table = self._lookup(_ref(name))
        require_no_plain_read(rows)
        return self._writing(table, [Kind.INSERT], [], lambda work: dml.append(work, table, rows))

    def overwrite(self, name: str, rows: DataFrame, partition: Mapping[str, object] | None = None) -> int:
        """Replace the table, or one partition, or the partitions that ``rows`` has rows for; returns how many."""
        fixed = {key.lower(): value for key, value in (partition or {}).items()}
        table = self._lookup(_ref(name))
        require_no_plain_read(rows)
        return self._writing(table, [Kind.INSERT_OVERWRITE], [],
                             lambda work: dml.replace_by(work, table, rows, fixed))

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
    def transaction(self, *, batch: tuple[TableName, StreamBatch] | None = None) -> Iterator[Self]:
        """Several statements, one transaction: committed at the end of the block, undone when it raises.

        Statements see what earlier ones of the block wrote. ``batch``: which batch of a streaming query it writes, and
        the table that has to remember that together with the commit. Raises: WriteConflictError when somebody else
        changed the same rows' partition and committed first; with ``batch`` see ``Transaction.commit``.
        """
        with self._transaction(TxnType.DEFAULT) as work:
            if batch is not None:
                work.txn.record(*batch)
            with self._as_block(work):
                yield self

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """What ``attempt`` returns; it is called again, ``retries`` times at most, when it loses a write conflict.

        Each call must read what it needs anew, in a transaction of its own. Inside a transaction block it is called
        once: the block as a whole has lost. UPDATE, DELETE, MERGE and INSERT OVERWRITE in SQL do this by themselves.
        """
        for left in reversed(range(self.retries if self._block is None else 0)):
            try:
                return attempt()
            except WriteConflictError as lost:
                _log.info("write_conflict.again", winner=lost.winner, attempts_left=left)
        return attempt()

    # -- streaming -------------------------------------------------------------------------------------------------

    def stream_into(self, rows: DataFrame | DataStreamWriter, name: str, *, checkpoint: str,
                    write: "Callable[[AcidSession, DataFrame], object] | None" = None) -> StreamingQuery:
        """Start a query that brings each of its batches into a table exactly once.

        ``rows``: a streaming DataFrame, or its ``writeStream`` with a trigger, an output mode or a name. ``write``:
        what to do with a batch, given a session and the batch; without it the rows are inserted. It is run in a
        transaction, which is committed together with the note that the batch is there, and may be run again.
        """
        table = self._lookup(_ref(name))
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="Streaming into a table")
        sink = BatchSink(table.name, checkpoint, write or BatchSink.inserting(name), self._beside)
        return start(rows, sink)

    def stream_positions(self, name: str) -> list[StreamPosition]:
        """How far each streaming query has come in a table, the latest first."""
        return positions(self.client, self._lookup(_ref(name)).name)

    def _beside(self, spark: SparkSession) -> "AcidSession":
        """A session like this one for the Spark session, and the thread, of a streaming query."""
        return AcidSession(spark, self.client.uri, retries=self.retries)

    # -- how a statement runs --------------------------------------------------------------------------------------

    def _run(self, statement: Statement, text: str) -> DataFrame:
        if self._is_sparks(statement):
            return self.spark.sql(text)
        match statement:
            case Query(tree=tree):
                return self._query(tree, text)
            case Insert() if self._lookup(statement.table).kind is TableKind.PLAIN:
                return self._run_over(statement.query, statement.over, text)
            case Insert() | MultiInsert() | Update() | Delete() | Merge() | Truncate():
                return self._rows(self._change(statement))
            case (CreateTable() | Convert() | AddConstraints() | DropConstraint() | ChangeColumn() | ReplaceColumns()
                  | DropColumns()):
                return self._rows(self._define(statement))
            case Compact() | Show() | AbortTransactions():
                return self._operate(statement)
            case PlainOnly(table=ref, reason=reason):
                raise InvalidOperationError(f"{ref} is transactional. {reason}")
            case PassThrough(tree=tree):
                return self._pass_through(tree, text)

    def _operate(self, statement: Compact | Show | AbortTransactions) -> DataFrame:
        match statement:
            case Compact():
                return admin.compact(self.spark, self.client, self._lookup(statement.table), statement)
            case Show(what=what):
                return admin.show(self.spark, self.client, what)
            case AbortTransactions(txn_ids=ids):
                return admin.abort(self.spark, self.client, ids)

    def _rows(self, count: int) -> DataFrame:
        return admin.one_row(self.spark, "rows", count)

    def _define(self, statement: CreateTable | Convert | AddConstraints | DropConstraint | ChangeColumn
                | ReplaceColumns | DropColumns) -> int:
        if isinstance(statement, CreateTable):
            return self._create(statement)
        table = self._lookup(statement.table)
        with self._exclusively(table):
            match statement:
                case Convert(properties=properties):
                    convert(self.client, self.files, table, self._locations(table), properties)
                case ChangeColumn() | ReplaceColumns() | DropColumns():
                    alter_columns(self.client, self.files, table, self._locations(table), statement)
                case AddConstraints(constraints=constraints, column=column):
                    add_constraints(self.spark, self.client, table, constraints, column)
                case DropConstraint(name=name):
                    drop_constraint(self.client, table, name)
        self.spark.catalog.refreshTable(f"{table.name.db}.{table.name.table}")
        return 0

    def _locations(self, table: AcidTable) -> list[str]:
        return [place.location for place in partition_places(self.client, table)]

    def _query(self, tree: exp.Expression, text: str) -> DataFrame:
        acid_tables = self._acid_tables(tree)
        if not acid_tables:
            return checked_sql(self.spark, text)
        return self._reading(acid_tables, lambda work: self._select(work, tree))

    def _select(self, work: Work, tree: exp.Expression) -> DataFrame:
        with self._views(work, row_id=names_row_id(tree)) as resolve:
            return checked_sql(self.spark, bound_sql(tree, resolve))

    def _pass_through(self, tree: exp.Expression | None, text: str) -> DataFrame:
        """What is Spark's own: a CREATE TABLE ... AS of a plain table may read ours, views and caches may not."""
        match tree:
            case exp.Create(kind="TABLE") if tree.expression is not None:
                return self._run_over(tree.expression, lambda query: _with_query(tree, query), text)
            case exp.Create() | exp.Cache() if self._acid_tables(tree):
                what = "cached" if isinstance(tree, exp.Cache) else "seen through a view"
                raise InvalidOperationError(
                    f"A transactional table cannot be {what} by Spark itself, which does not know of deleted rows. "
                    "session.sql(...) and session.table(...) give frames of a snapshot, for cache() or "
                    "createOrReplaceTempView(...).")
        return self.spark.sql(text)

    def _run_over(self, query: exp.Expression, statement: Callable[[str], str], text: str) -> DataFrame:
        """Let Spark run a statement that is its own over the snapshots of the tables of ours that its query reads.

        ``statement``: its text with another query in it.
        """
        def run(work: Work) -> DataFrame:
            with self._views(work, row_id=names_row_id(query)) as resolve:
                bound = bound_sql(query, resolve)
                checked_sql(self.spark, bound)
                return self.spark.sql(statement(bound))

        tables = self._acid_tables(query)
        return self._reading(tables, run) if tables else self.spark.sql(text)

    def _changed(self, text: str) -> int:
        statement = parse(text)
        if not isinstance(statement, Update | Delete | Merge):
            raise InvalidOperationError(f"This is not one statement: {text}")
        return self._change(statement)

    def _change(self, statement: Insert | MultiInsert | Update | Delete | Merge | Truncate) -> int:
        return self.retrying(lambda: self._change_once(statement))

    def _change_once(self, statement: Insert | MultiInsert | Update | Delete | Merge | Truncate) -> int:
        if isinstance(statement, MultiInsert):
            return self._insert_many(statement)
        target, sources = self._lookup(statement.table), self._acid_tables(*queries_of(statement))

        def run(work: Work) -> int:
            with self._views(work) as resolve:
                return dml.run(work, target, statement, resolve)

        return self._writing(target, kinds_of(statement), sources, run)

    def _is_sparks(self, statement: Statement) -> bool:
        """Whether a statement that may be ours is about no table of ours."""
        match statement:
            case MultiInsert(inserts=inserts):
                return (all(self._lookup(one.table).kind is TableKind.PLAIN for one in inserts)
                        and not self._acid_tables(*queries_of(statement)))
            case PlainOnly() | ChangeColumn() | ReplaceColumns() | DropColumns():
                return self._acid_table(statement.table) is None
        return False

    def _insert_many(self, statement: MultiInsert) -> int:
        targets = [self._lookup(one.table) for one in statement.inserts]
        outputs = [Output(target_of(table, is_written=True), kind)
                   for one, table in zip(statement.inserts, targets, strict=True) for kind in kinds_of(one)]

        def run(work: Work) -> int:
            with self._views(work) as resolve:
                return multi_insert(work, statement, targets, resolve)

        return self._writing_all(outputs, self._acid_tables(*queries_of(statement)), run)

    def _create(self, statement: CreateTable) -> int:
        name = table_name(statement.table.db or self.spark.catalog.currentDatabase(), statement.table.table)
        if statement.query is None:
            create_table(self.client, name, statement, self.client.user, self.spark)
            return 0
        rows = self.sql(statement.query.sql(DIALECT))
        columns = tuple((field.name.lower(), field.dataType.simpleString(), None) for field in rows.schema.fields)
        if create_table(self.client, name, replace(statement, columns=columns), self.client.user, self.spark):
            return self.insert(f"{name.db}.{name.table}", rows)
        return 0

    @contextmanager
    def _exclusively(self, table: AcidTable) -> Iterator[None]:
        """Nobody else reads or writes the table meanwhile."""
        if self._block is not None:
            raise InvalidOperationError("A table is altered at once: not inside a transaction or snapshot block.")
        locks = statement_locks(outputs=[Output(target_of(table), Kind.EXCLUSIVE_DDL)])
        with self._manager.locked(locks, agent=f"spark-{self.spark.sparkContext.applicationId}"):
            yield

    def _reading(self, tables: Sequence[AcidTable], read: Callable[[Work], DataFrame]) -> DataFrame:
        """Run a read in the block's transaction, or in one of its own that lives as long as the frame."""
        locks = statement_locks(inputs=[target_of(table) for table in tables])
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
        return self._writing_all([Output(target_of(target, is_written=True), kind) for kind in kinds], sources, write)

    def _writing_all(self, outputs: Sequence[Output], sources: Sequence[AcidTable],
                     write: Callable[[Work], int]) -> int:
        locks = statement_locks([target_of(table) for table in sources], outputs)
        if self._block is not None:
            self._block.txn.lock(locks)
            with self._block.whole_or_not(), self._shown(outputs, self._block):
                return write(self._block)
        with self._transaction(TxnType.DEFAULT) as work:
            work.txn.lock(locks)
            with self._shown(outputs, work):
                return write(work)

    def _shown(self, outputs: Sequence[Output], work: Work) -> AbstractContextManager[None]:
        names = dict.fromkeys(f"{output.target.db}.{output.target.table}" for output in outputs)
        return shown(self.spark, f"Writing {', '.join(names)}", work.published)

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
    def _views(self, work: Work, *, row_id: bool = False) -> Iterator[Resolve]:
        """Temporary views over the snapshots of the tables that a statement reads, gone once it is analysed."""
        views: dict[tuple[TableName, AsOf | None], str] = {}

        def resolve(ref: TableRef) -> str | None:
            table = self._acid_table(ref)
            if table is None:
                return None
            key = (table.name, version_of(self.spark, ref))
            if key not in views:
                views[key] = f"__snapshot_{uuid4().hex}"
                has_ids = row_id and table.kind is TableKind.FULL_ACID
                _shown(work, table, row_id=has_ids, as_of=key[1]).createOrReplaceTempView(views[key])
            return views[key]

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


def _with_query(tree: exp.Expression, query: str) -> str:
    """The text of a CREATE TABLE ... AS with another query."""
    changed = tree.copy()
    changed.set("expression", parse_one(query, dialect=DIALECT))
    return str(changed.sql(DIALECT))


def _shown(work: Work, table: AcidTable, *, row_id: bool = False, as_of: AsOf | None = None) -> DataFrame:
    """A table's rows as users see them."""
    rows = work.frame(table, row_ids=row_id, as_of=as_of)
    return with_row_id(rows) if row_id else rows


def _ref(name: str) -> TableRef:
    """``db.table`` or ``table``, quoted or not."""
    db, _, table = name.replace("`", "").lower().rpartition(".")
    return TableRef(db or None, table)


def _configured_uri(spark: SparkSession) -> str | None:
    """The metastore of the Spark session; None leaves it to $METASTORE_URI."""
    value = spark._jsc.hadoopConfiguration().get("hive.metastore.uris")  # noqa: SLF001 - as above
    return str(value) if value else None
