"""Serialized conditions of get_partitions_by_expr and drop_partitions_req: two spellings of one predicate.

Hive sends its expression tree as Kryo bytes; clients of the standalone metastore send a filter string in UTF-8.
Rule: a part of a tree that we cannot evaluate is ``Unknown``, never a guess; its partitions are then kept and reported
as undecided, and Hive evaluates the condition again.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

from metastore.catalog.rules import kryo
from metastore.catalog.rules.kryo import Node
from metastore.catalog.rules.partition_filter import parse_filter
from metastore.catalog.rules.partition_predicate import And, Literal, Op, Or, Predicate, Unknown
from metastore.catalog.rules.partition_syntax import (
    MIRRORED,
    AllOf,
    AnyOf,
    Condition,
    PartitionKey,
    Syntax,
    all_of,
    any_of,
    bind,
    negation,
    require_shallow,
)
from metastore.errors import InvalidRequestError

_COMPARISONS = {
    "GenericUDFOPEqual": Op.EQ,
    "GenericUDFOPEqualNS": Op.EQ,
    "GenericUDFOPNotEqual": Op.NE,
    "GenericUDFOPNotEqualNS": Op.NE,
    "GenericUDFOPLessThan": Op.LT,
    "GenericUDFOPEqualOrLessThan": Op.LE,
    "GenericUDFOPGreaterThan": Op.GT,
    "GenericUDFOPEqualOrGreaterThan": Op.GE,
}


def parse_expression(expr: bytes, keys: Sequence[PartitionKey], default: str) -> Predicate:
    """Return the predicate that the bytes stand for. Raises: InvalidRequestError if they are neither of the two."""
    if kryo.is_kryo(expr):
        try:
            syntax = require_shallow(_syntax(kryo.read(expr), default))
        except kryo.UnreadableError as error:
            return Unknown(str(error))
        return _bound(syntax, keys, default)
    try:
        text = expr.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            "The partition expression is neither a Hive expression nor a filter string"
        ) from error
    return parse_filter(text, keys, default)


def _bound(syntax: Syntax, keys: Sequence[PartitionKey], default: str) -> Predicate:
    """Bind as ``bind`` does, but return Unknown for a condition that does not fit the keys.

    Hive has checked types already.
    """
    match syntax:
        case AllOf(parts):
            return And(tuple(_bound(part, keys, default) for part in parts))
        case AnyOf(parts):
            return Or(tuple(_bound(part, keys, default) for part in parts))
        case _:
            try:
                return bind(syntax, keys, default)
            except InvalidRequestError as error:
                return Unknown(str(error))


def _syntax(node: Any, default: str) -> Syntax:
    """Return the condition that a node of the tree stands for. ``default``: the token of the default partition."""
    if _is(node, "ExprNodeConstantDesc") and isinstance(node.fields["value"], bool):
        return AllOf(()) if node.fields["value"] else AnyOf(())
    if not _is(node, "ExprNodeGenericFuncDesc") or not isinstance(node.fields["genericUDF"], Node):
        return Unknown("not a function")
    function, children = node.fields["genericUDF"], node.fields["children"]
    read = _FUNCTIONS.get(function.kind)
    return read(function, children, default) if read else Unknown(function.kind)


def _and(_function: Node, children: list[Any], default: str) -> Syntax:
    return all_of(_syntax(child, default) for child in children)


def _or(_function: Node, children: list[Any], default: str) -> Syntax:
    return any_of(_syntax(child, default) for child in children)


def _not(_function: Node, children: list[Any], default: str) -> Syntax:
    return negation(_syntax(children[0], default)) if len(children) == 1 else Unknown("NOT")


def _in(_function: Node, children: list[Any], _default: str) -> Syntax:
    return any_of(_equal(children[0], child) for child in children[1:]) if len(children) > 1 else Unknown("IN")


def _null(function: Node, children: list[Any], default: str) -> Syntax:
    """Return the condition that a key is null, which is the default partition."""
    if len(children) != 1:
        return Unknown("NULL")
    return _condition(children[0], Op.EQ if function.kind == "GenericUDFOPNull" else Op.NE, default)


def _between(_function: Node, children: list[Any], _default: str) -> Syntax:
    match children:
        case [negated, column, low, high] if isinstance(_value(negated), bool):
            inside = all_of([_condition(column, Op.GE, _value(low)), _condition(column, Op.LE, _value(high))])
            return negation(inside) if _value(negated) else inside
        case _:
            return Unknown("BETWEEN")


def _bridge(function: Node, children: list[Any], _default: str) -> Syntax:
    match children:
        case [column, pattern] if str(function.fields["udfName"]).lower() == "like":
            return _condition(column, Op.LIKE, _value(pattern))
        case _:
            return Unknown(str(function.fields["udfName"]))


def _comparison(function: Node, children: list[Any], _default: str) -> Syntax:
    match children:
        case [constant, column] if _is(constant, "ExprNodeConstantDesc"):
            return _condition(column, MIRRORED[_COMPARISONS[function.kind]], _value(constant))
        case [column, constant]:
            return _condition(column, _COMPARISONS[function.kind], _value(constant))
        case _:
            return Unknown(function.kind)


_FUNCTIONS: dict[str, Callable[[Node, list[Any], str], Syntax]] = {
    "GenericUDFOPAnd": _and,
    "GenericUDFOPOr": _or,
    "GenericUDFOPNot": _not,
    "GenericUDFIn": _in,
    "GenericUDFOPNull": _null,
    "GenericUDFOPNotNull": _null,
    "GenericUDFBetween": _between,
    "GenericUDFBridge": _bridge,
    **dict.fromkeys(_COMPARISONS, _comparison),
}


def _equal(left: Any, right: Any) -> Syntax:
    """Return an alternative of IN: a column and a value, or a struct of columns and a list of values."""
    if _is(left, "ExprNodeColumnDesc"):
        return _condition(left, Op.EQ, _value(right))
    values = _value(right)
    columns = (
        left.fields["children"]
        if _is(left, "ExprNodeGenericFuncDesc") and _is(left.fields["genericUDF"], "GenericUDFStruct")
        else None
    )
    if not columns or not isinstance(values, list) or len(columns) != len(values):
        return Unknown("IN")
    return all_of(_condition(column, Op.EQ, _plain(value)) for column, value in zip(columns, values, strict=True))


def _condition(column: Any, op: Op, constant: Any) -> Syntax:
    if not _is(column, "ExprNodeColumnDesc") or not column.fields["column"]:
        return Unknown("not a column")
    literal = _literal(constant)
    return Unknown("constant") if literal is None else Condition(column.fields["column"], op, literal)


def _is(node: Any, kind: str) -> bool:
    return isinstance(node, Node) and node.kind == kind


def _value(node: Any) -> Any:
    return _plain(node.fields["value"]) if _is(node, "ExprNodeConstantDesc") else None


def _plain(value: Any) -> Any:
    """Return the value inside one of Hive's own value classes."""
    if isinstance(value, Node):
        return next(
            (value.fields[name] for name in ("value", "localDate", "localDateTime") if name in value.fields), None
        )
    return value


def _literal(value: Any) -> Literal | None:
    return value if isinstance(value, str | int | date | datetime) and not isinstance(value, bool) else None
