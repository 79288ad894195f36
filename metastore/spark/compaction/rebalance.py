"""Rows of a rebalance: numbered from 0 over all of them, and dealt evenly to buckets.

Rule: the rows are ordered by their ROW__IDs, or by the request's columns and then by their ROW__IDs. In the order of
the ROW__IDs, which is the order of the files, a task for each bucket merges the rows between two ids; it leaves deleted
rows out, and numbers the rows that it writes. A pass over ids finds the first row of each bucket (``live_rows``). With
ORDER BY, or where files cannot be merged, deletes are applied before: a first pass reads the sort keys, and a second
sends each row to its bucket, one task each, which sorts and numbers. So each row is moved at most once. If a comparison
differed from the sort's, buckets would only be uneven, and the proof would find it.
Source: COMP-16; Hive numbers in one task.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    StructType,
    TimestampType,
    VarcharType,
)

from metastore.acid.bucket import encode
from metastore.acid.events import ID_COLUMNS
from metastore.acid.orc_footer import RowKey
from metastore.acid_tables.table import OURS
from metastore.compaction.queue.rules.ordering import SortColumn
from metastore.errors import InvalidOperationError
from metastore.spark.compaction.events import Events, InputReading, ranges
from metastore.spark.read.raw_files import POSITION_BITS

_NUMBER, _PART = f"{OURS}number", f"{OURS}part"


class _Key(NamedTuple):
    """A sort key of the rows, in a type whose values Python can receive and send back exactly."""

    column: Column
    type: str
    descending: bool = False
    nulls_first: bool = False

    @property
    def order(self) -> Column:
        """The column for a sort."""
        if self.descending:
            return self.column.desc_nulls_first() if self.nulls_first else self.column.desc_nulls_last()
        return self.column.asc_nulls_first() if self.nulls_first else self.column.asc_nulls_last()

    def behind(self, value: Any) -> Column:
        """Return a condition: the row sorts behind rows with this value."""
        if value is None:
            return self.column.isNotNull() if self.nulls_first else F.lit(False)  # noqa: FBT003
        other = self._literal(value)
        is_behind = self.column < other if self.descending else self.column > other
        return F.coalesce(is_behind, F.lit(not self.nulls_first))

    def equals(self, value: Any) -> Column:
        """Return a condition: the row has this value."""
        return self.column.eqNullSafe(self._literal(value))

    def _literal(self, value: Any) -> Column:
        return F.lit(bytes(value) if isinstance(value, bytearray) else value).cast(self.type)


def require_sortable(columns: Sequence[SortColumn], row: StructType, table: str) -> None:
    """Raise InvalidOperationError for a column that rows cannot be ordered by."""
    for column in columns:
        if column.name not in row.names:
            raise InvalidOperationError(
                f"ORDER BY {column.name}: {table} has no such column in its files; it has {', '.join(row.names)}"
            )
        _sortable(F.lit(None), row[column.name].dataType, column.name)


def deal(
    events: DataFrame, surveyed: DataFrame, row: StructType, order: Sequence[SortColumn], dealt: Sequence[int]
) -> DataFrame:
    """Give rows their buckets and numbers; ``dealt``: as ``working.rules.dealt`` has it, at least one bucket.

    ``events``: insert events of the rows, with the columns of ``staged_acid``; ``surveyed``: the same for the first
    pass. If the request orders the rows, all get the highest write id among them, since their own ids would no longer
    be in order.
    """
    keys = [_key(column, row) for column in order] + [_Key(F.col(name), "bigint") for name in ID_COLUMNS]
    firsts = dealt[:-1]
    bounds, highest = _survey(surveyed.where(_has_row(row)), keys, firsts[1:])
    bucket = f"{OURS}bucket"
    routed = events.withColumn(bucket, _bucket(keys, bounds, 0)).repartitionById(len(firsts), F.col(bucket))
    write_id = F.lit(highest).cast("bigint") if order else F.col("originalTransaction")
    return _numbered(routed.sortWithinPartitions(*(key.order for key in keys)), bucket, firsts, write_id)


def in_order(reading: InputReading, firsts: Sequence[RowKey], dealt: Sequence[int]) -> Events:
    """Return events in the order of their ROW__IDs; a task for each bucket numbers them as it writes.

    Otherwise as ``deal``.

    ``firsts``: the ROW__IDs of the first rows of all buckets but the lowest.
    """
    bucket = f"{OURS}bucket"
    rows = reading.in_ranges(ranges(firsts), bucket).withColumn("currentTransaction", F.col(bucket).cast("bigint"))
    numbers = [(first, encode(writer)) for writer, first in enumerate(dealt[:-1] or (0,))]
    return Events(rows.drop(bucket), is_ordered=True, numbers=numbers)


def _has_row(row: StructType) -> Column:
    """Return a condition on ``row``, since Spark misreads an ACID file without "row"."""
    return F.col("row").getField(row.names[0]).isNotNull() | F.col("row").isNotNull()


def _numbered(rows: DataFrame, bucket: str, firsts: Sequence[int], write_id: Column) -> DataFrame:
    place = F.monotonically_increasing_id().bitwiseAND(POSITION_BITS)
    first = F.element_at(F.array(*(F.lit(number).cast("bigint") for number in firsts)), F.col(bucket) + 1)
    number = F.element_at(F.array(*(F.lit(encode(writer)) for writer in range(len(firsts)))), F.col(bucket) + 1)
    return rows.withColumn(_NUMBER, first + place).select(
        "operation",
        write_id.alias("originalTransaction"),
        number.alias("bucket"),
        F.col(_NUMBER).alias("rowId"),
        write_id.alias("currentTransaction"),
        "row",
    )


def _survey(events: DataFrame, keys: Sequence[_Key], numbers: Sequence[int]) -> tuple[list[tuple[Any, ...]], int]:
    """Return the keys of the rows with these numbers, and the highest write id of all rows."""
    names = [f"{OURS}key{place}" for place in range(len(keys))]
    surveyed = [key._replace(column=F.col(name)) for key, name in zip(keys, names, strict=True)]
    ordered = [key.order for key in surveyed]
    parts = 2 * events.sparkSession.sparkContext.defaultParallelism
    keyed = events.select(*(key.column.alias(name) for key, name in zip(keys, names, strict=True)))
    spread = keyed.repartitionByRange(parts, *ordered).persist(StorageLevel.DISK_ONLY)
    try:
        original = names[len(keys) - len(ID_COLUMNS)]
        rows = spread.groupBy(F.spark_partition_id().alias(_PART)).agg(F.count("*"), F.max(original)).collect()
        counts = {part: count for part, count, _ in rows}
        highest = max((write_id for _, _, write_id in rows), default=0)
        if not numbers:
            return [], highest
        begins, total = [], 0
        for part in range(parts):
            begins.append(F.lit(total).cast("bigint"))
            total += counts.get(part, 0)
        number = F.element_at(F.array(*begins), F.spark_partition_id() + 1)
        place = F.monotonically_increasing_id().bitwiseAND(POSITION_BITS)
        bounds = (
            spread.sortWithinPartitions(*ordered)
            .withColumn(_NUMBER, number + place)
            .where(F.col(_NUMBER).isin(*numbers))
            .orderBy(_NUMBER)
            .select(*names)
            .collect()
        )
        return [tuple(values) for values in bounds], highest
    finally:
        spread.unpersist()


def _bucket(keys: Sequence[_Key], bounds: Sequence[tuple[Any, ...]], lowest: int) -> Column:
    """Return a row's bucket, by bisection; ``bounds``: the keys of the first row of each bucket but the lowest."""
    if not bounds:
        return F.lit(lowest)
    middle = len(bounds) // 2
    return F.when(_reaches(keys, bounds[middle]), _bucket(keys, bounds[middle + 1 :], lowest + middle + 1)).otherwise(
        _bucket(keys, bounds[:middle], lowest)
    )


def _reaches(keys: Sequence[_Key], bound: tuple[Any, ...]) -> Column:
    """Return a condition that holds for a row whose keys equal ``bound`` or sort after it."""
    pairs = reversed(list(zip(keys, bound, strict=True)))
    return reduce(lambda rest, pair: pair[0].behind(pair[1]) | (pair[0].equals(pair[1]) & rest), pairs, F.lit(True))  # noqa: FBT003


def _key(column: SortColumn, row: StructType) -> _Key:
    key = _sortable(F.col("row").getField(column.name), row[column.name].dataType, column.name)
    return key._replace(descending=column.descending, nulls_first=column.nulls_first)


def _sortable(column: Column, kind: DataType, name: str) -> _Key:
    match kind:
        case IntegralType():
            return _Key(column.cast("bigint"), "bigint")
        case BooleanType():
            return _Key(column, "boolean")
        case DecimalType():
            return _Key(column, kind.simpleString())
        case FractionalType():
            return _Key(column.cast("double"), "double")
        case StringType() | CharType() | VarcharType() | BinaryType():
            return _Key(column.cast("binary"), "binary")
        case DateType():
            return _Key(F.unix_date(column), "int")
        case TimestampType():
            return _Key(F.unix_micros(column), "bigint")
        case _:
            raise InvalidOperationError(f"ORDER BY {name}: rows cannot be ordered by a {kind.simpleString()}")
