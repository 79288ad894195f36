"""The filter language of get_table_names_by_filter: partition filters over owner, last access and parameters.

Source: CAT-T8; ``hive_filter_field_tableName__`` is the field with which the 4.x client asks for a name pattern.
"""

from dataclasses import dataclass
from typing import Any, cast

from metastore.catalog.model import Table
from metastore.catalog.rules.like import like
from metastore.catalog.rules.partition_filter import parse
from metastore.catalog.rules.partition_predicate import Op
from metastore.catalog.rules.partition_syntax import AllOf, AnyOf, Condition, Syntax
from metastore.errors import InvalidRequestError

_PREFIX = "hive_filter_field_"
_OWNER, _LAST_ACCESS, _NAME = f"{_PREFIX}owner__", f"{_PREFIX}last_access__", f"{_PREFIX}tablename__"
_PARAMETERS = f"{_PREFIX}params__"
_IGNORING_CASE = "(?i)"


@dataclass(frozen=True)
class TableFilter:
    """A filter that is known to be well-formed."""

    syntax: Syntax

    @classmethod
    def of(cls, text: str) -> "TableFilter":
        """Read a filter; an empty filter keeps every table.

        Raises: InvalidRequestError for wrong syntax, a wrong key, or an operator it does not take.
        """
        parsed = cls(parse(text) if text else AllOf(()))
        _check(parsed.syntax)
        return parsed

    def accepts(self, table: Table) -> bool:
        """Return True if the filter keeps the table."""
        return _holds(self.syntax, table)


def _check(syntax: Syntax) -> None:
    match syntax:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                _check(part)
        case _:
            condition = cast("Condition", syntax)  # A text is never parsed as Unknown.
            _check_condition(condition.key, condition.op, is_integer=isinstance(condition.constant, int))


def _check_condition(key: str, op: Op, *, is_integer: bool) -> None:
    name = key.lower()
    if name.startswith(_PARAMETERS):
        if op not in {Op.EQ, Op.NE, Op.LIKE}:
            raise InvalidRequestError(f"Only =, !=, <> and LIKE are supported on table parameters, not {op}")
    elif name == _LAST_ACCESS:
        if op is Op.LIKE or not is_integer:
            raise InvalidRequestError("The time of last access is compared with an integer, and not by LIKE")
    elif name not in {_OWNER, _NAME}:
        raise InvalidRequestError(
            f"Invalid key name in filter: {key}. Use {_OWNER}, {_LAST_ACCESS} or {_PARAMETERS}<name>"
        )


def _holds(syntax: Syntax, table: Table) -> bool:
    match syntax:
        case AllOf(parts):
            return all(_holds(part, table) for part in parts)
        case AnyOf(parts):
            return any(_holds(part, table) for part in parts)
        case _:
            condition = cast("Condition", syntax)
            value = _value(condition.key, table)
            return value is not None and _compare(value, condition.op, condition.constant)


def _value(key: str, table: Table) -> str | int | None:
    name = key.lower()
    if name == _LAST_ACCESS:
        return table.last_access_time
    if name == _OWNER:
        return table.owner
    if name == _NAME:
        return table.name.table
    return table.parameters.get(key[len(_PARAMETERS) :])


def _compare(value: str | int, op: Op, constant: object) -> bool:
    if op is Op.LIKE:
        return _like(str(value), str(constant))
    left: Any
    right: Any
    left, right = (value, constant) if isinstance(value, int) else (str(value), str(constant))
    holds: dict[Op, bool] = {
        Op.EQ: left == right,
        Op.NE: left != right,
        Op.LT: left < right,
        Op.LE: left <= right,
        Op.GT: left > right,
        Op.GE: left >= right,
    }
    return holds[op]


def _like(value: str, pattern: str) -> bool:
    ignore_case = pattern.startswith(_IGNORING_CASE)
    return like(pattern.removeprefix(_IGNORING_CASE), ignore_case=ignore_case).matches(value)
