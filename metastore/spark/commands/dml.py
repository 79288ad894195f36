"""INSERT, INSERT OVERWRITE, UPDATE, DELETE, MERGE, TRUNCATE inside one transaction: rows in, published events out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from uuid import uuid4

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.storagelevel import StorageLevel
from sqlglot import exp

from metastore.acid.names import BaseName, DeltaName
from metastore.errors import InvalidOperationError
from metastore.locks.rules import Operation
from metastore.spark.commands.constraints import Rule, TableConstraints, Watch
from metastore.spark.read.listing import BROADCAST_LIMIT
from metastore.spark.read.plain_reads import checked_sql
from metastore.spark.read.reader import row_id_column
from metastore.spark.sql import dml_selects
from metastore.spark.sql.binding import Resolve, bound_sql
from metastore.spark.sql.conditions import Conditions
from metastore.spark.sql.pruning import restriction
from metastore.spark.sql.statements import Delete, Insert, Merge, Truncate, Update
from metastore.spark.tables.acid_table import OURS, AcidTable, TableKind, quoted
from metastore.spark.txn.spark_txn import View, Work
from metastore.spark.write.acid_writer import ChangedTwiceError
from metastore.spark.write.events import changes_of, delete_events, insert_events, partition_key, routed_rows
from metastore.spark.write.partition_locations import read_by


def by_name(rows: DataFrame, table: AcidTable, defaults: Mapping[str, str]) -> DataFrame:
    """``rows`` with the table's columns in the table's order; a column that is not given has its default, or NULL.

    ``defaults``: SQL by column.

    Raises: InvalidOperationError for a column that the table does not have, or a partition key that is not given.
    """
    given = {name.lower(): name for name in rows.columns}
    wanted = [column.name for column in (*table.columns, *table.partition_keys)]
    if unknown := [name for name in given if name not in wanted]:
        raise InvalidOperationError(f"{table.name} has no column {unknown[0]}. It has: {', '.join(wanted)}.")
    if missing := [name for name in table.partition_names if name not in given and name not in defaults]:
        raise InvalidOperationError(f"The rows have no value for partition key {missing[0]} of {table.name}.")
    values = {name: quoted(given[name]) if name in given else f"({defaults.get(name, 'NULL')})" for name in wanted}
    return rows.selectExpr(*(f"CAST({values[column.name]} AS {column.sql_type}) AS {quoted(column.name)}"
                             for column in (*table.columns, *table.partition_keys)))


def by_position(rows: DataFrame, table: AcidTable, statement: Insert, defaults: Mapping[str, str]) -> DataFrame:
    """A query's columns as INSERT means them: by position or BY NAME, static partition keys from PARTITION (...)."""
    static = _static(statement)
    if unknown := [key for key in statement.partition if key not in table.partition_names]:
        raise InvalidOperationError(f"{unknown[0]} is not a partition key of {table.name}.")
    named = rows.columns if statement.by_name else _named(table, statement)
    if len(rows.columns) != len(named):
        raise InvalidOperationError(f"The query has {len(rows.columns)} columns, and INSERT INTO {table.name} takes "
                                    f"{len(named)}: {', '.join(named)}.")
    if twice := [name for name in named if name.lower() in static]:
        raise InvalidOperationError(f"{twice[0]} is given twice, by PARTITION ({twice[0]} = ...) and by the query: "
                                    "leave out one of them.")
    renamed = rows.toDF(*named)
    for key, value in static.items():
        renamed = renamed.withColumn(key, F.expr(value))
    return by_name(renamed, table, defaults)


def _named(table: AcidTable, statement: Insert) -> list[str]:
    """The columns that the values of an INSERT stand for."""
    static = _static(statement)
    wanted = [column.name for column in (*table.columns, *table.partition_keys) if column.name not in static]
    return list(statement.columns) or wanted


def _static(statement: Insert) -> dict[str, str]:
    return {key: value for key, value in statement.partition.items() if value is not None}


def with_constants(rows: DataFrame, table: AcidTable, fixed: Mapping[str, object]) -> tuple[DataFrame, Watch]:
    """``rows`` with the partition keys of a static overwrite as columns, and what counts the rows of other partitions.

    Rows may have those columns as well, if they say the same.
    """
    if unknown := [key for key in fixed if key not in table.partition_names]:
        raise InvalidOperationError(f"{unknown[0]} is not a partition key of {table.name}.")
    given = {name.lower(): name for name in rows.columns}
    types = {key.name: key.sql_type for key in table.partition_keys}
    rules = []
    for key, value in fixed.items():
        if key in given:
            rows = rows.withColumn(f"{OURS}{key}", F.lit(value))
            said, meant = (f"try_cast({quoted(name)} AS {types[key]})" for name in (given[key], f"{OURS}{key}"))
            rules.append(Rule(f"PARTITION ({key} = {value}), being of another,", f"NOT ({said} <=> {meant})"))
    watch = Watch(TableConstraints(table.name, tuple(rules)))
    rows = watch.over(rows).drop(*(name for key in fixed if key in given for name in (given[key], f"{OURS}{key}")))
    for key, value in fixed.items():
        rows = rows.withColumn(key, F.lit(value))
    return rows, watch


def append(work: Work, table: AcidTable, rows: DataFrame) -> int:
    """Append rows, matched to the table's columns by name."""
    constraints = TableConstraints.of(work.client, table)
    return insert(work, table, by_name(rows, table, constraints.defaults), constraints)


def replace_by(work: Work, table: AcidTable, rows: DataFrame, fixed: Mapping[str, object]) -> int:
    """INSERT OVERWRITE with rows that are matched to the table's columns by name."""
    constraints = TableConstraints.of(work.client, table)
    rows, watch = with_constants(rows, table, fixed)
    count = overwrite(work, table, by_name(rows, table, constraints.defaults), fixed, constraints)
    watch.require_kept()
    return count


def insert(work: Work, table: AcidTable, rows: DataFrame, constraints: TableConstraints) -> int:
    """Append rows that are already in the table's shape. Raises: ConstraintViolationError."""
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="INSERT")
    statement, watch = work.next_statement(table), Watch(constraints)
    watched = watch.over(rows)
    if table.kind is TableKind.INSERT_ONLY:
        name = DeltaName(statement.write_id, statement.write_id, statement.statement)
        count = work.publish_rows(table, name, routed_rows(watched, table), statement=statement)
    else:
        events, is_routed = insert_events(watched, table, statement)
        count = work.publish(table, statement, events, Operation.INSERT, is_routed=is_routed)
    watch.require_kept()
    return count


def overwrite(work: Work, table: AcidTable, rows: DataFrame, fixed: Mapping[str, object],
              constraints: TableConstraints) -> int:
    """Replace the table (unpartitioned), the partition that ``fixed`` names whole, or those that get rows.

    Raises: ConstraintViolationError.
    """
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="INSERT OVERWRITE")
    keep: list[str] = []
    if not table.partition_keys:
        keep = [table.location]
    elif set(fixed) == set(table.partition_names):
        keep = [_key(work, table, fixed)]
    watch = Watch(constraints)
    count = _replace(work, table, watch.over(rows), keep)
    watch.require_kept()
    return count


def _replace(work: Work, table: AcidTable, rows: DataFrame, keep_empty: Sequence[str]) -> int:
    """Publish a base where there are rows, and one without any at the keys (or the location) of ``keep_empty``."""
    statement = work.next_statement(table)
    if table.kind is TableKind.INSERT_ONLY:
        return work.publish_rows(table, BaseName(statement.write_id), routed_rows(rows, table), statement=statement,
                                 keep_empty=keep_empty)
    events, is_routed = insert_events(rows, table, statement)
    return work.publish_base(table, statement, events, keep_empty=keep_empty, is_routed=is_routed)


def _truncate(work: Work, table: AcidTable, statement: Truncate) -> int:
    """Empty a table, or the partitions with the values of ``partition``: an empty base in every directory."""
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="TRUNCATE")
    partition = statement.partition
    if unknown := [key for key in partition if key not in table.partition_names]:
        raise InvalidOperationError(f"{unknown[0]} is not a partition key of {table.name}.")
    where = restriction(statement.conditions, table.partition_keys)
    rows, found = work.frame(table, where=where), []
    if table.partition_keys:
        found = read_by(work.spark, table, [place.values for place in work.places(table, where)])
    for at, key in enumerate(table.partition_keys):
        if key.name in partition:
            value = F.expr(partition[key.name]).cast(key.spark_type())
            rows = rows.where(F.col(f"`{key.name}`").eqNullSafe(value))
            [[text]] = work.spark.range(1).select(value.cast("string")).collect()
            found = [values for values in found if values[at] == text]
    before = rows.count()
    keep = list(map(partition_key, found)) if table.partition_keys else [table.location]
    _replace(work, table, work.spark.createDataFrame([], table.schema), keep)
    return before


def run(work: Work, table: AcidTable, statement: Insert | Update | Delete | Merge | Truncate, resolve: Resolve) -> int:
    """Run a statement; returns how many rows it inserted, changed and removed."""
    match statement:
        case Insert():
            return insert_all(work, table, [statement], resolve)
        case Update():
            return _update(work, table, statement, resolve)
        case Delete():
            return _delete(work, table, statement, resolve)
        case Merge():
            return _merge(work, table, statement, resolve)
        case Truncate():
            return _truncate(work, table, statement)


def insert_all(work: Work, table: AcidTable, statements: Sequence[Insert], resolve: Resolve) -> int:
    """INSERT INTO or OVERWRITE with a query; or several that overwrite the same, with the rows of all."""
    constraints, first = TableConstraints.of(work.client, table), statements[0]
    several = [constraints.in_insert(one, _named(table, one)) for one in statements]
    rows = reduce(DataFrame.union, (by_position(query(work, one.query, resolve), table, one, constraints.defaults)
                                    for one in several))
    if not first.overwrite:
        return insert(work, table, rows, constraints)
    static = _static(first)
    fixed = work.spark.sql(f"SELECT {', '.join(static.values())}").collect()[0] if static else ()
    return overwrite(work, table, rows, dict(zip(static, fixed, strict=True)), constraints)


def _update(work: Work, table: AcidTable, statement: Update, resolve: Resolve) -> int:
    """UPDATE: a delete event and a new version for each row that the condition holds for."""
    table.require(TableKind.FULL_ACID, action="UPDATE")
    constraints = TableConstraints.of(work.client, table)
    statement, watch = constraints.in_update(statement), Watch(constraints)
    with _target_view(work, table, statement.conditions) as (view, seen):
        rows = query(work, dml_selects.update_select(statement, table, view), resolve)
    kept = {column.name for column in table.columns} - set(statement.assignments)
    seen.require_exact_moves(work, rows, kept)
    number = work.next_statement(table)
    count = work.publish(table, number, changes_of(watch.over(rows), table, number), Operation.UPDATE)
    watch.require_kept()
    return count


def _delete(work: Work, table: AcidTable, statement: Delete, resolve: Resolve) -> int:
    """DELETE: a delete event for each row that the condition holds for."""
    table.require(TableKind.FULL_ACID, action="DELETE")
    with _target_view(work, table, statement.conditions) as (view, _):
        rows = query(work, dml_selects.delete_select(statement, table, view), resolve)
    number = work.next_statement(table)
    return work.publish(table, number, delete_events(rows, table, number), Operation.UPDATE)


def _merge(work: Work, table: AcidTable, statement: Merge, resolve: Resolve) -> int:
    """MERGE: the source is evaluated once; a target row that two source rows want to change is an error."""
    table.require(TableKind.FULL_ACID, action="MERGE")
    constraints = TableConstraints.of(work.client, table)
    named = statement.named([column.name for column in (*table.columns, *table.partition_keys)])
    statement, watch = constraints.in_merge(named), Watch(constraints)
    source = query(work, dml_selects.merge_source(statement), resolve)
    with evaluated_once(source):
        is_small = source.count() <= BROADCAST_LIMIT
        with _target_view(work, table, statement.conditions) as (view, seen), _view_of(source) as name:
            select = dml_selects.merge_select(statement, table, view, name, source.columns, is_small=is_small)
            rows = query(work, select, resolve)
        seen.require_exact_moves(work, _updated(rows), dml_selects.kept_columns(statement, table, source.columns))
        number = work.next_statement(table)
        new = watch.over(rows, f"{dml_selects.ACTION} <> '{dml_selects.DELETE}'")
        try:
            count = work.publish(table, number, changes_of(new, table, number), Operation.UPDATE)
        except ChangedTwiceError as error:
            raise InvalidOperationError(
                f"MERGE: {error.times} source rows match the same row of {table.name} (ROW__ID {list(error.row_id)}). "
                "Make the source unique on the ON condition.") from error
    watch.require_kept()
    return count


def _updated(rows: DataFrame) -> DataFrame:
    return rows.where(F.col(dml_selects.ACTION) == dml_selects.UPDATE)


def query(work: Work, tree: exp.Expr, resolve: Resolve) -> DataFrame:
    """A query over snapshots. Raises: InvalidOperationError if it reads a transactional table past them."""
    return checked_sql(work.spark, bound_sql(tree, resolve))


@contextmanager
def _target_view(work: Work, table: AcidTable, conditions: Conditions) -> Iterator[tuple[str, View]]:
    """A temporary view over the target's rows with their ROW__IDs, for one statement to be analysed; and its files."""
    seen = work.view(table, where=restriction(conditions, table.partition_keys))
    seen.require_named_rows()
    with _view_of(seen.frame(work.spark, row_ids=True).select("*", row_id_column())) as view:
        yield view, seen


@contextmanager
def _view_of(rows: DataFrame) -> Iterator[str]:
    """A temporary view, for one statement to be analysed."""
    view = f"__rows_{uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        yield view
    finally:
        rows.sparkSession.catalog.dropTempView(view)


@contextmanager
def evaluated_once(rows: DataFrame) -> Iterator[None]:
    """Both jobs of a statement must see the same rows, whatever ``rand()`` or a changing source would say."""
    rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        rows.unpersist()


def _key(work: Work, table: AcidTable, fixed: Mapping[str, object]) -> str:
    """The key of a partition given by its values."""
    fields = table.partition_type.fields
    row: Row | None = work.spark.range(1).select(
        *(F.lit(fixed[field.name]).cast(field.dataType).cast("string") for field in fields)).first()
    return partition_key(list(row or ()))
