"""FROM source INSERT ... INSERT ...: one source, evaluated once, into several tables or partitions in one transaction.

Rule: each INSERT is a statement of its own inside the transaction, with its own statement id, so two that go into one
table do not meet. What one of them overwrites, none of the others may write: a base hides what lies below its write id.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from sqlglot import exp

from metastore.errors import InvalidOperationError
from metastore.spark import dml
from metastore.spark.binding import Resolve
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
            return sum(dml.run(work, table, _over(one, view, statement.alias), resolve) for one, table in pairs)
    finally:
        work.spark.catalog.dropTempView(view)


def _over(one: Insert, view: str, alias: str) -> Insert:
    """The INSERT with its SELECT over the source's rows."""
    query = one.query.copy()
    query.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(view),
                                               alias=exp.TableAlias(this=exp.to_identifier(alias)))))
    return replace(one, query=query)


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
