"""Serialized conditions of get_partitions_by_expr and drop_partitions_req: two spellings of one predicate.

Hive sends its expression tree as Kryo bytes; clients of the standalone metastore send a filter string in UTF-8.
Rule: a part of a tree that we cannot evaluate is ``Unknown``, never a guess; its partitions are then kept and reported
as undecided, and Hive evaluates the condition again.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from metastore.catalog.rules import kryo
from metastore.catalog.rules.kryo import Node
from metastore.catalog.rules.partition_filter import (
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
    parse_filter,
)
from metastore.catalog.rules.partition_predicate import And, Literal, Op, Or, Predicate, Unknown
from metastore.errors import InvalidRequestError

_COMPARISONS = {"GenericUDFOPEqual": Op.EQ, "GenericUDFOPEqualNS": Op.EQ, "GenericUDFOPNotEqual": Op.NE,
                "GenericUDFOPNotEqualNS": Op.NE, "GenericUDFOPLessThan": Op.LT, "GenericUDFOPEqualOrLessThan": Op.LE,
                "GenericUDFOPGreaterThan": Op.GT, "GenericUDFOPEqualOrGreaterThan": Op.GE}


def parse_expression(expr: bytes, keys: Sequence[PartitionKey], default: str) -> Predicate:
    """The predicate that the bytes stand for.  Raises: InvalidRequestError if they are neither of the two."""
    if kryo.is_kryo(expr):
        try:
            syntax = _syntax(kryo.read(expr), default)
        except kryo.UnreadableError as error:
            return Unknown(str(error))
        return _bound(syntax, keys, default)
    try:
        text = expr.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError("The partition expression is neither a Hive expression nor a filter string") from error
    return parse_filter(text, keys, default)


def _bound(syntax: Syntax, keys: Sequence[PartitionKey], default: str) -> Predicate:
    """As ``bind``; a condition that does not fit the keys is unknown, since Hive has checked types already."""
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
    if not isinstance(node, Node):
        return Unknown("not an expression")
    if node.kind == "ExprNodeConstantDesc" and isinstance(node.fields["value"], bool):
        return AllOf(()) if node.fields["value"] else AnyOf(())
    if node.kind != "ExprNodeGenericFuncDesc":
        return Unknown(node.kind)
    function, children = node.fields["genericUDF"], node.fields["children"]
    name = function.kind if isinstance(function, Node) else ""
    if name == "GenericUDFOPAnd":
        return all_of(_syntax(child, default) for child in children)
    if name == "GenericUDFOPOr":
        return any_of(_syntax(child, default) for child in children)
    if name == "GenericUDFOPNot" and len(children) == 1:
        return negation(_syntax(children[0], default))
    if name == "GenericUDFIn" and len(children) > 1:
        return any_of(_equal(children[0], child) for child in children[1:])
    if name in {"GenericUDFOPNull", "GenericUDFOPNotNull"} and len(children) == 1:
        return _condition(children[0], Op.EQ if name == "GenericUDFOPNull" else Op.NE, default)
    if name == "GenericUDFBetween" and len(children) == 4 and isinstance(_value(children[0]), bool):
        _, column, low, high = children
        inside = all_of([_condition(column, Op.GE, _value(low)), _condition(column, Op.LE, _value(high))])
        return negation(inside) if _value(children[0]) else inside
    if len(children) == 2:
        return _of_two(name, function, *children)
    return Unknown(name)


def _of_two(name: str, function: Node, left: Any, right: Any) -> Syntax:
    if name == "GenericUDFBridge" and str(function.fields["udfName"]).lower() == "like":
        return _condition(left, Op.LIKE, _value(right))
    if name not in _COMPARISONS:
        return Unknown(name)
    if _is(left, "ExprNodeConstantDesc"):
        return _condition(right, MIRRORED[_COMPARISONS[name]], _value(left))
    return _condition(left, _COMPARISONS[name], _value(right))


def _equal(left: Any, right: Any) -> Syntax:
    """One alternative of IN: a column and a value, or a struct of columns and a list of values."""
    if _is(left, "ExprNodeColumnDesc"):
        return _condition(left, Op.EQ, _value(right))
    values = _value(right)
    columns = left.fields["children"] if _is(left, "ExprNodeGenericFuncDesc") and _is(
        left.fields["genericUDF"], "GenericUDFStruct") else None
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
    """What Hive's own value classes hold."""
    if isinstance(value, Node):
        return next((value.fields[name] for name in ("value", "localDate", "localDateTime") if name in value.fields), None)
    return value


def _literal(value: Any) -> Literal | None:
    return value if isinstance(value, str | int | date | datetime) and not isinstance(value, bool) else None
