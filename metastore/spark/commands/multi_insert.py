"""FROM source INSERT ... INSERT ...: one source, evaluated once, into several tables or partitions in one transaction.

Rule: each INSERT is a statement of its own inside the transaction, with its own statement id, so two that go into one
table do not meet. Those that overwrite the partitions that their rows name are one, with the rows of all, as in Hive.
What is overwritten otherwise, none of the others may write: a base hides what lies below its write id.
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
    """Run all INSERTs; returns how many rows they wrote. ``targets``: their tables, in order."""
    groups = _groups(list(zip(statement.inserts, targets, strict=True)))
    _require_apart(groups)
    source = query(work, statement.source, resolve)
    view = f"__source_{uuid4().hex}"
    source.createOrReplaceTempView(view)
    try:
        with evaluated_once(source):
            columns = {
                one.name: one.dataType.fieldNames()
                for one in source.schema.fields
                if one.name in statement.joined and isinstance(one.dataType, StructType)
            }
            return sum(
                insert_all(work, table, [_over(one, view, statement.alias, columns) for one in inserts], resolve)
                for table, inserts in groups
            )
    finally:
        work.spark.catalog.dropTempView(view)


def _over(one: Insert, view: str, alias: str, columns: Mapping[str, Sequence[str]]) -> Insert:
    """The INSERT with its SELECT over the source's rows."""
    query = of_joined(one.query, columns) if columns else one.query.copy()
    query.set(
        "from_",
        exp.From(this=exp.Table(this=exp.to_identifier(view), alias=exp.TableAlias(this=exp.to_identifier(alias)))),
    )
    return replace(one, query=query)


def of_joined(query: exp.Expr, columns: Mapping[str, Sequence[str]]) -> exp.Expr:
    """A SELECT over rows with a struct for each joined table (``columns`` by its name); ``*`` means those of all.

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
            [exp.column(exp.Star(), table=name) for name in columns] if isinstance(one, exp.Star) else [one]
            for one in query.expressions
        ]
        query.set("expressions", [one for several in shown for one in several])
    return query


def _groups(pairs: Sequence[tuple[Insert, AcidTable]]) -> list[_Group]:
    """The INSERTs by table, and by what they overwrite; those first that do, so that none hides another unnoticed."""
    groups: dict[object, _Group] = {}
    for number, (one, table) in enumerate(pairs):
        key = (table.name, *one.partition.items()) if one.overwrite else number
        groups.setdefault(key, (table, []))[1].append(one)
    return sorted(groups.values(), key=lambda group: not group[1][0].overwrite)


def _require_apart(groups: Sequence[_Group]) -> None:
    for table, _ in groups:
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="An INSERT among several")
    often = Counter(table.name for table, _ in groups)
    overwritten = {table.name for table, (one, *_) in groups if one.overwrite}
    for table, (one, *same) in groups:
        is_whole = all(one.partition.get(key) for key in table.partition_names)
        is_shared = often[table.name] > 1 and table.name in overwritten
        if (same and is_whole) or (is_shared and not (table.partition_keys and is_whole)):
            raise InvalidOperationError(
                f"{table.name} is overwritten and written again by one statement: that is "
                "possible only for different partitions, each whole: PARTITION (key=value), "
                "or all the same way for those that the rows name: PARTITION (key)."
            )
