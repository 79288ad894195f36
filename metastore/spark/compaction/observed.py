"""What rows say of their columns, tallied while Spark passes them on: for formats whose files are Spark's own business.

Rule: the rows are read once, for the files. Spark counts a task twice when it had to do it again: whoever gets these
tallies compares their rows with the files'.
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
"""Of the number of distinct values, on average."""
_EXACT = Context(prec=100)


@dataclass(frozen=True)
class Observed:
    """Rows to pass on, and what has been seen of them by then."""

    rows: DataFrame
    types: Mapping[str, str]
    seen: Observation | None

    @classmethod
    def of(cls, rows: DataFrame, types: Mapping[str, str]) -> Self:
        """Rows of which columns are to be described; ``types``: their types in Hive."""
        if not types:
            return cls(rows, types, None)
        seen, zone = Observation(), jvm_of(rows.sparkSession).java.util.TimeZone.getDefault().getID()
        tallies = [tally for number, column in enumerate(types) for tally in _tallies(rows, number, column, zone)]
        return cls(rows.observe(seen, F.count(F.lit(1)).alias("rows"), *tallies), types, seen)

    def columns(self) -> dict[str, Whole]:
        """What was seen. Called when the rows have been written, and there were some."""
        if self.seen is None:
            return {}
        seen = self.seen.get
        return {column: _whole(seen, number) for number, column in enumerate(self.types)}


def _tallies(rows: DataFrame, number: int, column: str, zone: str) -> list[Column]:
    """As Hive's statistics count them: NaN and the infinite have no place in a range, times are those on the wall."""
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
    if isinstance(bound, Decimal):  # always with all of its type's digits behind the point
        return str(int(_EXACT.scaleb(bound, -int(bound.as_tuple().exponent))))
    return None if bound is None else str(bound)
