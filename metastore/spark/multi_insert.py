"""FROM source INSERT ... INSERT ...: one source, evaluated once, into several tables or partitions in one transaction.

Rule: each INSERT is a statement of its own inside the transaction, with its own statement id, so two that go into one
table do not meet. What one of them overwrites, none of the others may write: a base hides what lies below its write id.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from pyspark.sql.types import StructType
from sqlglot import exp

from metastore.errors import InvalidOperationError
from metastore.spark import dml
from metastore.spark.binding import Resolve
from metastore.spark.dialect import DIALECT
from metastore.spark.statements import Insert, MultiInsert
from metastore.spark.tables import AcidTable, TableKind
from metastore.spark.work import Work


def multi_insert(work: Work, statement: MultiInsert, targets: Sequence[AcidTable], resolve: Resolve) -> int:
    """Run all INSERTs; returns how many rows they wrote. ``targets``: their tables, in order."""
    pairs = list(zip(statement.inserts, targets, strict=True))
    _require_apart(pairs)
    source = dml.query(work, statement.source, resolve)
    view = f"__source_{uuid4().hex}"
    source.createOrReplaceTempView(view)
    try:
        with dml.evaluated_once(source):
            columns = {one.name: one.dataType.fieldNames() for one in source.schema.fields
                       if one.name in statement.joined and isinstance(one.dataType, StructType)}
            return sum(dml.run(work, table, _over(one, view, statement.alias, columns), resolve)
                       for one, table in pairs)
    finally:
        work.spark.catalog.dropTempView(view)


def _over(one: Insert, view: str, alias: str, columns: Mapping[str, Sequence[str]]) -> Insert:
    """The INSERT with its SELECT over the source's rows."""
    query = of_joined(one.query, columns) if columns else one.query.copy()
    query.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(view),
                                               alias=exp.TableAlias(this=exp.to_identifier(alias)))))
    return replace(one, query=query)


def of_joined(query: exp.Expression, columns: Mapping[str, Sequence[str]]) -> exp.Expression:
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
            raise InvalidOperationError(f"{column.sql(DIALECT)} is a column of {' and of '.join(owners) or 'none'} of "
                                        f"{', '.join(columns)}: say of which table it is.")
        column.replace(exp.Dot.build([exp.to_identifier(owners[0]), *(part.copy() for part in column.parts)]))
    if isinstance(query, exp.Select):
        shown = [[exp.column(exp.Star(), table=name) for name in columns] if isinstance(one, exp.Star) else [one]
                 for one in query.expressions]
        query.set("expressions", [one for several in shown for one in several])
    return query


def _require_apart(pairs: Sequence[tuple[Insert, AcidTable]]) -> None:
    for _, table in pairs:
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="An INSERT among several")
    often = Counter(table.name for _, table in pairs)
    overwritten = {table.name for one, table in pairs if one.overwrite}
    for one, table in pairs:
        is_whole = table.partition_keys and all(one.partition.get(key) for key in table.partition_names)
        if often[table.name] > 1 and table.name in overwritten and not (one.overwrite and is_whole):
            raise InvalidOperationError(f"{table.name} is overwritten and written again by one statement: that is "
                                        "possible only for different partitions, each whole: PARTITION (key=value).")
