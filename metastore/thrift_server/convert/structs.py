"""Conversions between any Thrift struct and a JSON object with Thrift's field names.

Absent fields are absent on both sides.

This is the stored form of storage descriptors, partition keys and statistics. Binary values are base64 text; a map
whose keys are not strings is a list of pairs, since JSON has no such objects. It uses the generated ``thrift_spec``, so
a field that is added to the IDL needs no code here.
"""

import base64
from collections.abc import Sequence
from typing import Any, TypeVar

from thrift.Thrift import TType

from metastore.errors import MetaError

Json = dict[str, Any]
S = TypeVar("S")


def struct_to_json(struct: Any) -> Json:
    """Convert the fields that are set, under their Thrift names."""
    return {
        name: _value_to_json(kind, args, value)
        for _, kind, name, args, _ in filter(None, type(struct).thrift_spec)
        if (value := getattr(struct, name)) is not None
    }


def struct_from_json(struct_type: type[S], fields: Json) -> S:
    """Convert the result of ``struct_to_json`` back to the struct; unknown names are left out."""
    known = {
        name: _value_from_json(kind, args, fields[name])
        for _, kind, name, args, _ in filter(None, struct_type.thrift_spec)  # type: ignore[attr-defined]
        if fields.get(name) is not None
    }
    return struct_type(**known)


def _value_to_json(kind: int, args: Any, value: Any) -> Any:
    if kind == TType.STRUCT:
        return struct_to_json(value)
    if kind in (TType.LIST, TType.SET):
        return [_value_to_json(args[0], args[1], item) for item in value]
    if kind == TType.MAP:
        pairs = [
            (_value_to_json(args[0], args[1], key), _value_to_json(args[2], args[3], item))
            for key, item in value.items()
        ]
        return dict(pairs) if args[0] == TType.STRING else [list(pair) for pair in pairs]
    if kind == TType.STRING and args == "BINARY":
        return base64.b64encode(value).decode()
    return value


def _value_from_json(kind: int, args: Any, value: Any) -> Any:
    if kind == TType.STRUCT:
        return struct_from_json(args[0], value)
    if kind == TType.LIST:
        items = [_value_from_json(args[0], args[1], item) for item in value]
        return tuple(items) if args[2] else items
    if kind == TType.SET:
        return {_value_from_json(args[0], args[1], item) for item in value}
    if kind == TType.MAP:
        pairs = value.items() if isinstance(value, dict) else value
        return {
            _value_from_json(args[0], args[1], key): _value_from_json(args[2], args[3], item) for key, item in pairs
        }
    if kind == TType.STRING and args == "BINARY":
        return base64.b64decode(value)
    return value


def request_to_json(spec: Sequence[Any], values: Sequence[Any]) -> Json:
    """Convert a method's only argument, a struct, or its arguments by name. ``spec``: the arguments' declarations.

    Raises: MetaError without the struct.
    """
    entries = [entry for entry in spec if entry]
    if len(entries) == 1 and entries[0][1] == TType.STRUCT:
        if values[0] is None:
            raise MetaError(f"Null {entries[0][2]} is not allowed")
        return struct_to_json(values[0])
    return {
        name: _value_to_json(kind, args, value)
        for (_, kind, name, args, _), value in zip(entries, values, strict=True)
        if value is not None
    }


def answer_from_json(spec: Any, answer: Any) -> Any:
    """Convert an answer from JSON to the type that the method returns. ``spec``: the method's result, of one field."""
    [(_, kind, _, args, _)] = spec
    return _value_from_json(kind, args, answer)
