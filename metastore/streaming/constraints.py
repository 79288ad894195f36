"""NOT NULL and CHECK of a table, enforced by writers without Spark.

Rule: records are checked before any of them is written, and the error names the first that breaks a rule. A CHECK that
is NULL holds, as in SQL. A CHECK that cannot be evaluated here is refused when a writer connects.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import InvalidOperationError
from metastore.streaming.expressions import evaluated
from metastore.streaming.records import RecordError


@dataclass(frozen=True)
class Rules:
    """The constraints that every row of a table must meet. They can be pickled."""

    not_null: tuple[tuple[str, str], ...] = ()
    """(name, column)."""

    checks: tuple[tuple[str, str], ...] = ()
    """(name, condition)."""

    def require_sound(self, schema: pa.Schema) -> None:
        """Raise InvalidOperationError for a CHECK that cannot be evaluated here over rows like these."""
        none = schema.empty_table()
        for name, condition in self.checks:
            try:
                is_condition = pa.types.is_boolean(evaluated(condition, none).type)
            except (InvalidOperationError, pa.ArrowException) as error:
                raise InvalidOperationError(
                    f"CHECK {name} ({condition}) cannot be kept by a writer without Spark: "
                    f"{error}. Write with Spark, or DISABLE it."
                ) from error
            if not is_condition:
                raise InvalidOperationError(f"CHECK {name} ({condition}) is no condition")

    def require_kept(self, rows: pa.Table, fixed: Mapping[str, pa.Scalar]) -> None:
        """Raise RecordError for the first row that breaks a rule; ``fixed``: partition keys that rows do not have."""
        for name, column in self.not_null:
            if column in rows.column_names:
                _refuse_first(pc.is_valid(rows.column(column)), column, f"breaks NOT NULL {name} ({column})")
            elif rows.num_rows and not fixed[column].is_valid:
                raise RecordError(0, column, f"breaks NOT NULL {name} ({column})")
        if not self.checks:
            return
        for column, value in fixed.items():
            rows = rows.append_column(column, pa.repeat(value, rows.num_rows))
        for name, condition in self.checks:
            try:
                holds = evaluated(condition, rows)
            except pa.ArrowException as error:
                raise RecordError(0, "", f"CHECK {name} ({condition}) cannot be evaluated: {error}") from error
            if isinstance(holds, pa.Scalar):
                holds = pa.repeat(holds, rows.num_rows)
            _refuse_first(holds, "", f"breaks CHECK {name} ({condition})")


def _refuse_first(holds: pa.Array | pa.ChunkedArray, field: str, reason: str) -> None:
    at = int(pc.index(holds, value=False).as_py())
    if at >= 0:
        raise RecordError(at, field, f"it {reason}" if not field else reason)
