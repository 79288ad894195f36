"""Tallies of columns that Spark computes while it passes rows on, for formats whose files Spark writes itself.

Rule: the rows are read once, for the files. Spark counts a task twice when it runs it again, so the caller compares the
tallied rows with the files' rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Self

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from metastore.acid_tables.table import quoted
from metastore.compaction.statistics.rules import Whole
from metastore.spark.jvm.compiled import jvm_of

_ERROR = 0.02
"""The relative error of the number of distinct values, on average."""
_EXACT = Context(prec=100)


@dataclass(frozen=True)
class Observed:
    """Rows that pass through unchanged, and tallies of the rows that have passed."""

    rows: DataFrame
    types: Mapping[str, str]
    seen: Observation | None

    @classmethod
    def of(cls, rows: DataFrame, types: Mapping[str, str]) -> Self:
        """Return the rows with tallies. ``types``: the columns to tally, with their types in Hive."""
        if not types:
            return cls(rows, types, None)
        seen, zone = Observation(), jvm_of(rows.sparkSession).java.util.TimeZone.getDefault().getID()
        tallies = [tally for number, column in enumerate(types) for tally in _tallies(rows, number, column, zone)]
        return cls(rows.observe(seen, F.count(F.lit(1)).alias("rows"), *tallies), types, seen)

    def columns(self) -> dict[str, Whole]:
        """Return the tallies. The rows must have been written, and there must be some."""
        if self.seen is None:
            return {}
        seen = self.seen.get
        return {column: _whole(seen, number) for number, column in enumerate(self.types)}


def _tallies(rows: DataFrame, number: int, column: str, zone: str) -> list[Column]:
    """Return a column's tallies as in Hive's statistics: ranges without NaN and infinities, times as local times."""
    value, kind = F.col(quoted(column)), rows.schema[column].dataType.typeName()
    bound, length, trues = value, F.lit(0), F.lit(0)
    if kind in ("float", "double"):
        bound = F.when(F.abs(value) < F.lit(float("inf")), value)
    elif kind == "date":
        bound = F.unix_date(value)
    elif kind == "timestamp":
        bound = F.unix_seconds(F.from_utc_timestamp(value, zone))
    elif kind in ("string", "char", "varchar", "binary"):
        bound, length = F.lit(None), F.octet_length(value) if kind == "binary" else F.length(value)
    elif kind == "boolean":
        bound, trues = F.lit(None), value.cast("int")
    return [
        F.count_if(value.isNull()).alias(f"nulls_{number}"),
        F.coalesce(F.sum(trues), F.lit(0)).alias(f"trues_{number}"),
        F.coalesce(F.sum(length), F.lit(0)).alias(f"length_{number}"),
        F.coalesce(F.max(length), F.lit(0)).alias(f"longest_{number}"),
        F.min(bound).alias(f"low_{number}"),
        F.max(bound).alias(f"high_{number}"),
        F.approx_count_distinct(value, _ERROR).alias(f"distinct_{number}"),
    ]


def _whole(seen: Mapping[str, Any], number: int) -> Whole:
    return Whole(
        rows=seen["rows"],
        nulls=seen[f"nulls_{number}"],
        trues=seen[f"trues_{number}"],
        length=seen[f"length_{number}"],
        longest=seen[f"longest_{number}"],
        low=_text(seen[f"low_{number}"]),
        high=_text(seen[f"high_{number}"]),
        distinct=seen[f"distinct_{number}"],
    )


def _text(bound: Any) -> str | None:
    if isinstance(bound, Decimal):  # It has all digits of its type's scale, so the unscaled integer is exact.
        return str(int(_EXACT.scaleb(bound, -int(bound.as_tuple().exponent))))
    return None if bound is None else str(bound)
