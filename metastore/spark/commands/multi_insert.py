"""FROM source INSERT ... INSERT ...: a source, evaluated once, into several tables or partitions in one transaction.

Rule: each INSERT is a statement of its own inside the transaction, with its own statement id, so that two INSERTs into
one table write different directories. INSERTs that overwrite the partitions of their rows are a single statement with
the rows of all, as in Hive. No other INSERT may write to what is overwritten: a base hides all up to its write id.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias
from uuid import uuid4

from pyspark.sql.types import StructType
from sqlglot import exp

from metastore.acid_tables.table import AcidTable, TableKind
from metastore.errors import InvalidOperationError
from metastore.spark.commands.insert import insert_all
from metastore.spark.commands.views import evaluated_once, query
from metastore.spark.sql.binding import Resolve
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.statements import Insert, MultiInsert
from metastore.spark.txn.spark_txn import Work

_Group: TypeAlias = tuple[AcidTable, list[Insert]]


def multi_insert(work: Work, statement: MultiInsert, targets: Sequence[AcidTable], resolve: Resolve) -> int:
    """Run all INSERTs; returns the number of rows. ``targets``: their tables, in order.

    Raises: InvalidOperationError, ConstraintViolationError.
    """
    groups = _groups(list(zip(statement.inserts, targets, strict=True)))
    _require_apart(groups)
    source = query(work, statement.source, resolve)
    view = f"__source_{uuid4().hex}"
    source.createOrReplaceTempView(view)
    try:
        with evaluated_once(source):
            columns = {
                field.name: field.dataType.fieldNames()
                for field in source.schema.fields
                if field.name in statement.joined and isinstance(field.dataType, StructType)
            }
            return sum(
                insert_all(work, table, [_over(insert, view, statement.alias, columns) for insert in inserts], resolve)
                for table, inserts in groups
            )
    finally:
        work.spark.catalog.dropTempView(view)


def _over(insert: Insert, view: str, alias: str, columns: Mapping[str, Sequence[str]]) -> Insert:
    """The INSERT with its SELECT over the source's rows."""
    query = of_joined(insert.query, columns) if columns else insert.query.copy()
    query.set(
        "from_",
        exp.From(this=exp.Table(this=exp.to_identifier(view), alias=exp.TableAlias(this=exp.to_identifier(alias)))),
    )
    return replace(insert, query=query)


def of_joined(query: exp.Expr, columns: Mapping[str, Sequence[str]]) -> exp.Expr:
    """A SELECT over rows with a struct for each joined table; ``columns``: by its name. ``*`` means those of all.

    Raises: InvalidOperationError for a column of no table, or of several.
    """
    query = query.copy()
    names = {name.lower() for name in columns}
    for column in query.find_all(exp.Column):
        first, *others = (part.name.lower() for part in column.parts)
        if column.parent_select is not query or first in names:
            continue
        if others and others[0] in names:  # a database in front
            column.set("db", None)
            continue
        owners = [name for name, fields in columns.items() if first in {field.lower() for field in fields}]
        if len(owners) != 1:
            raise InvalidOperationError(
                f"{column.sql(DIALECT)} is a column of {' and of '.join(owners) or 'none'} of "
                f"{', '.join(columns)}: say of which table it is."
            )
        column.replace(exp.Dot.build([exp.to_identifier(owners[0]), *(part.copy() for part in column.parts)]))
    if isinstance(query, exp.Select):
        shown = [
            [exp.column(exp.Star(), table=name) for name in columns]
            if isinstance(expression, exp.Star)
            else [expression]
            for expression in query.expressions
        ]
        query.set("expressions", [expression for expressions in shown for expression in expressions])
    return query


def _groups(pairs: Sequence[tuple[Insert, AcidTable]]) -> list[_Group]:
    """The INSERTs by table and overwritten partitions; overwriting groups first, so that none hides another's rows."""
    groups: dict[object, _Group] = {}
    for number, (insert, table) in enumerate(pairs):
        key = (table.name, *insert.partition.items()) if insert.overwrite else number
        groups.setdefault(key, (table, []))[1].append(insert)
    return sorted(groups.values(), key=lambda group: not group[1][0].overwrite)


def _require_apart(groups: Sequence[_Group]) -> None:
    for table, _ in groups:
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="An INSERT among several")
    often = Counter(table.name for table, _ in groups)
    overwritten = {table.name for table, (insert, *_) in groups if insert.overwrite}
    for table, (insert, *same) in groups:
        is_whole = all(insert.partition.get(key) for key in table.partition_names)
        is_shared = often[table.name] > 1 and table.name in overwritten
        if (same and is_whole) or (is_shared and not (table.partition_keys and is_whole)):
            raise InvalidOperationError(
                f"{table.name} is overwritten and written again by one statement: that is "
                "possible only for different partitions, each whole: PARTITION (key=value), "
                "or all the same way for those that the rows name: PARTITION (key)."
            )
