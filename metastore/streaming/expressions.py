"""Evaluator of SQL conditions and values over Arrow rows, for CHECK and DEFAULT without Spark.

Rule: an expression means here what it means in Hive and Spark, or it is refused before a row is written. NULL is SQL's
NULL (a condition is true, false or unknown), NaN is equal to itself and above all numbers, an overflow is an error.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from metastore.errors import InvalidOperationError

_DIALECT = "spark"
_WIDE = 76
"""Digits of the decimals that numbers are compared in."""

_Compare = Callable[[Any, Any], Any]
_COMPARISONS: Mapping[type[exp.Expr], _Compare] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
_ARITHMETIC: Mapping[type[exp.Expr], _Compare] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
}
_CASTS = {
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMPTZ: pa.timestamp("us"),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.BOOLEAN: pa.bool_(),
}


def evaluated(text: str, rows: pa.Table) -> Any:
    """Return the value of an expression for each row, or an Arrow scalar for all.

    Raises: InvalidOperationError for an expression that is not supported here, pa.ArrowException for an overflow.
    """
    return _value(_parsed(text), rows)


def constant(text: str, kind: pa.DataType) -> Any:
    """Return the value of an expression without columns, as Python's. Raises: InvalidOperationError."""
    value = evaluated(text, pa.table({}))
    try:
        if pa.types.is_decimal(kind):
            value = value.cast(pa.decimal256(_WIDE, kind.scale))
        return value.cast(kind).as_py()
    except pa.ArrowException as error:
        raise InvalidOperationError(f"{text} is no {kind}") from error


@cache
def _parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect=_DIALECT)
    except SqlglotError as error:
        raise InvalidOperationError(f"{text} is not understood: {error}") from error


def _value(node: exp.Expr, rows: pa.Table) -> Any:
    made = _NODES.get(type(node))
    if made is None:
        raise _unknown(node)
    return made(node, rows)


def _column(node: exp.Expr, rows: pa.Table) -> Any:
    if node.name.lower() not in rows.column_names:
        raise InvalidOperationError(f"there is no column {node.name}")
    return rows.column(node.name.lower())


def _literal(node: exp.Expr, _: pa.Table) -> Any:
    """Return a literal as SQL reads it: 1.5 is a decimal, 1e3 is a double."""
    text = node.this
    if node.is_string:
        return pa.scalar(text)
    if text.isdigit():
        return pa.scalar(int(text))
    return pa.scalar(float(text) if "e" in text.lower() else Decimal(text))


def _is(node: exp.Expr, rows: pa.Table) -> Any:
    if not isinstance(node.expression, exp.Null):
        raise _unknown(node)
    return pc.is_null(_value(node.this, rows))


def _between(node: exp.Expr, rows: pa.Table) -> Any:
    value = _value(node.this, rows)
    low, high = (_value(node.args[bound], rows) for bound in ("low", "high"))
    return pc.and_kleene(_compared(exp.GTE, value, low), _compared(exp.LTE, value, high))


def _in(node: exp.Expr, rows: pa.Table) -> Any:
    if not node.expressions:
        raise _unknown(node)
    value = _value(node.this, rows)
    return reduce(pc.or_kleene, (_compared(exp.EQ, value, _value(expression, rows)) for expression in node.expressions))


def _like(node: exp.Expr, rows: pa.Table) -> Any:
    if not isinstance(node.expression, exp.Literal) or not node.expression.is_string:
        raise _unknown(node)
    return pc.match_like(_text(node.this, rows), node.expression.this)


def _trim(node: exp.Expr, rows: pa.Table) -> Any:
    if node.expression or node.args.get("position"):
        raise _unknown(node)
    return pc.utf8_trim(_text(node.this, rows), characters=" ")


def _coalesce(node: exp.Expr, rows: pa.Table) -> Any:
    first, *others = (_value(argument, rows) for argument in (node.this, *node.expressions))
    return reduce(lambda value, other: pc.coalesce(*_aligned(value, other)), others, first)


def _cast(node: exp.Expr, rows: pa.Table) -> Any:
    if not isinstance(node.this, exp.Literal | exp.Neg | exp.Null) or node.args["to"].this not in _CASTS:
        raise _unknown(node)
    return _value(node.this, rows).cast(_CASTS[node.args["to"].this])


_NODES: Mapping[type[exp.Expr], Callable[[exp.Expr, pa.Table], Any]] = {
    **{kind: lambda node, rows: _compared(type(node), *_sides(node, rows)) for kind in _COMPARISONS},
    **{kind: lambda node, rows: _ARITHMETIC[type(node)](*_numbers(node, *_sides(node, rows))) for kind in _ARITHMETIC},
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Null: lambda _, __: pa.scalar(None),
    exp.Boolean: lambda node, _: pa.scalar(bool(node.this)),
    exp.Paren: lambda node, rows: _value(node.this, rows),
    exp.Neg: lambda node, rows: pc.negate_checked(_value(node.this, rows)),
    exp.And: lambda node, rows: pc.and_kleene(_condition(node.this, rows), _condition(node.expression, rows)),
    exp.Or: lambda node, rows: pc.or_kleene(_condition(node.this, rows), _condition(node.expression, rows)),
    exp.Not: lambda node, rows: pc.invert(_condition(node.this, rows)),
    exp.NullSafeEQ: lambda node, rows: _null_safe(*_sides(node, rows)),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Length: lambda node, rows: pc.utf8_length(_text(node.this, rows)),
    exp.Trim: _trim,
    exp.Abs: lambda node, rows: pc.abs_checked(_value(node.this, rows)),
    exp.Coalesce: _coalesce,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
"""What is understood."""


def _unknown(node: exp.Expr) -> InvalidOperationError:
    return InvalidOperationError(f"{node.sql(_DIALECT)} is not understood without Spark")


def _sides(node: exp.Expr, rows: pa.Table) -> tuple[Any, Any]:
    return _value(node.this, rows), _value(node.expression, rows)


def _condition(node: exp.Expr, rows: pa.Table) -> Any:
    value = _value(node, rows)
    if pa.types.is_null(value.type):
        return value.cast(pa.bool_())
    if not pa.types.is_boolean(value.type):
        raise InvalidOperationError(f"{node.sql(_DIALECT)} is no condition")
    return value


def _text(node: exp.Expr, rows: pa.Table) -> Any:
    value = _value(node, rows)
    if not pa.types.is_string(value.type):
        raise InvalidOperationError(f"{node.sql(_DIALECT)} is no text")
    return value


def _compared(kind: type[exp.Expr], left: Any, right: Any) -> Any:
    left, right = _aligned(left, right)
    if not pa.types.is_floating(left.type):
        return _COMPARISONS[kind](left, right)
    # NaN is above all numbers and equal to itself: NaN flags are compared first, then the numbers.
    left_nan, other = pc.is_nan(left), pc.is_nan(right)
    either = pc.or_(left_nan, other)
    as_numbers = pc.cast(left_nan, pa.int8()), pc.cast(other, pa.int8())
    return pc.if_else(either, _COMPARISONS[kind](*as_numbers), _COMPARISONS[kind](left, right))


def _null_safe(left: Any, right: Any) -> Any:
    equal = pc.fill_null(_compared(exp.EQ, left, right), fill_value=False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Return both operands in one type in which they can be compared.

    Raises: InvalidOperationError if engines convert them or differ.
    """
    kind, other = left.type, right.type
    if pa.types.is_null(kind) or pa.types.is_null(other):
        return (left.cast(other), right) if pa.types.is_null(kind) else (left, right.cast(kind))
    if _is_number(kind) and _is_number(other):
        wide = _wide(kind, other)
        return left.cast(wide), right.cast(wide)
    if kind == other and _is_simple(kind):
        return left, right
    if _is_moment(kind) and _is_moment(other):
        return left.cast(pa.timestamp("us")), right.cast(pa.timestamp("us"))
    for moment, text in ((left, right), (right, left)):
        if _is_moment(moment.type) and pa.types.is_string(text.type) and isinstance(text, pa.Scalar):
            try:
                parsed = text.cast(moment.type)
            except pa.ArrowException as error:
                raise InvalidOperationError(f"{text} is no {moment.type}") from error
            return (left, parsed) if moment is left else (parsed, right)
    raise InvalidOperationError(f"{kind} and {other} are not compared without Spark")


def _numbers(node: exp.Expr, left: Any, right: Any) -> tuple[Any, Any]:
    """Return both operands for arithmetic: whole numbers, or doubles."""
    kinds = (left.type, right.type)
    if not all(map(_is_number, kinds)) or any(map(pa.types.is_decimal, kinds)):
        raise InvalidOperationError(f"{node.sql(_DIALECT)} is not computed without Spark")
    wide = pa.float64() if any(map(pa.types.is_floating, kinds)) else pa.int64()
    return left.cast(wide), right.cast(wide)


def _wide(data_type: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(data_type) or pa.types.is_floating(other):
        return pa.float64()
    scales = [kind.scale for kind in (data_type, other) if pa.types.is_decimal(kind)]
    return pa.decimal256(_WIDE, max(scales)) if scales else pa.int64()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _is_simple(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_boolean(kind) or _is_moment(kind))
