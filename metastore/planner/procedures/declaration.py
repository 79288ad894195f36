"""The declaration of a procedure: named parameters, and rows of named, typed columns.

Rule: a connector knows no procedure by name: it asks for the list, passes the arguments and shows the rows. A procedure
has the same effect as the command of the same name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from metastore.errors import InvalidInputError
from metastore.ids import DEFAULT_DATABASE, TableName, split_table_name, table_name
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.tables import acid_table

TEXT, NUMBER, FLAG, INSTANT = "string", "bigint", "boolean", "timestamp"
NUMBERS, TEXTS = "array<bigint>", "array<string>"
_NULL = "NULL"

Rows = Iterable[Mapping[str, Any]]


class Parameter(NamedTuple):
    """A parameter of a procedure. ``default``: an expression of SQL; None: the caller must give it."""

    name: str
    type: str
    comment: str
    default: str | None = _NULL


@dataclass(frozen=True)
class Procedure:
    """A procedure. ``columns``: of its rows, with Spark's types; an instant is in milliseconds."""

    comment: str
    parameters: Sequence[Parameter]
    columns: Mapping[str, str]
    rows: Callable[[PlannerCall, Body], Rows]
    statement: Callable[[PlannerCall, Body], str] | None = None
    """SQL that the engine is to run before it shows the rows."""
    query: Callable[[PlannerCall, Body], Answer | None] = lambda *_: None
    """A query whose only row the engine sends to a call, before it shows the rows: sql, call, arguments."""


TABLE = Parameter("table", TEXT, "db.table, or the name of a table of the current database", None)
ONLY_TABLE = Parameter("table", TEXT, "only of this table: db.table, or a table of the current database")


def existing_table(call: PlannerCall, arguments: Body) -> TableName:
    """Return the table that an argument names; without a database, it is in the caller's current one.

    Raises: NoSuchObjectError; InvalidOperationError: no ACID table.
    """
    try:
        db, table = split_table_name(arguments.text("table"))
    except ValueError as error:
        raise InvalidInputError(f"table => {error}") from None
    return acid_table(call.client, table_name(db or call.body.text("database", DEFAULT_DATABASE), table)).name


def required_ids(arguments: Body, name: str, what: str) -> list[int]:
    """Return ids that a caller gives. Raises: InvalidInputError."""
    ids = arguments.values(name)
    if not ids or not all(isinstance(number, int) and number > 0 for number in ids):
        raise InvalidInputError(f"{name} must be ids of {what}, as in array(17, 18).")
    return ids


def is_wanted(arguments: Body, argument: str, value: str | None) -> bool:
    """Return True if an argument is absent, or is this value, in any case."""
    return not arguments.has(argument) or arguments.text(argument).lower() == (value or "").lower()
