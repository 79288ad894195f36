"""TRUNCATE: an empty base in every directory of a table, or of some partitions."""

from pyspark.sql import functions as F  # noqa: N812

from metastore.acid_tables.partitions import partition_key
from metastore.acid_tables.table import AcidTable, TableKind
from metastore.errors import InvalidOperationError
from metastore.spark.commands.overwrite import replace_rows
from metastore.spark.read.partition_texts import read_by
from metastore.spark.sql.pruning import restriction
from metastore.spark.sql.statements import Truncate
from metastore.spark.tables.spark_types import schema_of, type_of
from metastore.spark.txn.spark_txn import Work


def truncate(work: Work, table: AcidTable, statement: Truncate) -> int:
    """Empty a table, or its partitions with the statement's values; returns the number of rows that there were."""
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="TRUNCATE")
    partition = statement.partition
    if unknown := [key for key in partition if key not in table.partition_names]:
        raise InvalidOperationError(f"{unknown[0]} is not a partition key of {table.name}.")
    where = restriction(statement.conditions, table.partition_keys)
    rows, partitions = work.frame(table, where=where), []
    if table.partition_keys:
        partitions = read_by(work.spark, table, [place.values for place in work.places(table, where)])
    for at, key in enumerate(table.partition_keys):
        if key.name in partition:
            value = F.expr(partition[key.name]).cast(type_of(key))
            rows = rows.where(F.col(f"`{key.name}`").eqNullSafe(value))
            [[text]] = work.spark.range(1).select(value.cast("string")).collect()
            partitions = [values for values in partitions if values[at] == text]
    before = rows.count()
    keep = list(map(partition_key, partitions)) if table.partition_keys else [table.location]
    replace_rows(work, table, work.spark.createDataFrame([], schema_of(table)), keep)
    return before
