"""What callers take a table for: they read its definition before they have its locks, and may wait long for these.

Rule: files say which columns they have, by name. Who writes or reads by a definition that has been replaced meanwhile
would lose values without a word, so the statement is refused, and runs right the next time.
"""

from collections.abc import Sequence
from typing import Any

from metastore.acid_tables.table import AcidTable, HiveColumn
from metastore.client import WriteConflictError
from metastore.errors import InvalidInputError
from metastore.planner.body import Body

_PAIR = 2


def definition(table: AcidTable) -> dict[str, Any]:
    """What decides about the files of a table, in the form of the field ``known``."""
    return {
        "columns": _typed(table.columns),
        "partition_keys": _typed(table.partition_keys),
        "buckets": [table.bucket_count, *table.bucket_columns],
    }


def require_known(table: AcidTable, body: Body) -> None:
    """Raise WriteConflictError where the table is another than the caller knows, if it says what it knows.

    A caller that writes says all in ``known``, and one that reads only the columns that it reads.
    """
    if body.has("known") and (known := body.body("known")).fields != definition(table):
        raise _changed(table, _pairs(known))
    if body.has("columns"):
        now = [*_typed(table.columns), *_typed(table.partition_keys)]
        if gone := [column for column in _pairs(body) if column not in now]:
            raise _changed(table, gone)


def _pairs(body: Body) -> list[list[str]]:
    """Read the field ``columns``. Raises: InvalidInputError."""
    columns = body.values("columns")
    if not all(
        isinstance(column, list) and len(column) == _PAIR and all(isinstance(part, str) for part in column)
        for column in columns
    ):
        raise InvalidInputError(f'{body.place}columns must be a list of [name, type], like ["id", "int"].')
    return columns


def _typed(columns: Sequence[HiveColumn]) -> list[list[str]]:
    return [[column.name, column.type] for column in columns]


def _changed(table: AcidTable, known: Sequence[Sequence[str]]) -> WriteConflictError:
    had = ", ".join(" ".join(column) for column in known)
    has = ", ".join(f"{column.name} {column.type}" for column in (*table.columns, *table.partition_keys))
    return WriteConflictError(
        f"{table.name} was altered or replaced after this statement had begun with its columns ({had}): now it has "
        f"({has}). Nothing was written. Run the statement again; a DataFrame is to be made anew.",
        0,
    )
