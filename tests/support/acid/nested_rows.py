"""Random columns of nested types, and rows with NULLs at every level: for tests of what writes ORC without Spark."""

import base64
from random import Random
from typing import Any

from metastore.acid.types import HiveType, parse_type

_LEAVES = ("int", "bigint", "smallint", "boolean", "double", "string", "varchar(9)", "binary", "decimal(10,2)", "decimal(30,2)",
           "date", "timestamp")
_LEAF = {
    "boolean": lambda number: number % 2 == 0,
    "double": lambda number: number / 2,
    "decimal": lambda number: f"{number}.25",
    "date": lambda number: f"2024-05-{number % 28 + 1:02}",
    "timestamp": lambda number: f"2024-05-01 10:20:{number % 60:02}.123456",
    "binary": lambda number: base64.b64encode(b"%d" % number).decode(),
    "string": lambda number: f"text {number}",
    "varchar": lambda number: f"text {number}",
}
"""A value of each kind for a number; integers are it."""


def columns(dice: Random, count: int, depth: int = 3) -> dict[str, str]:
    """Columns of Hive's types, all of them nested."""
    return {f"c{number}": _kind(dice, depth, dice.choice(["array", "map", "struct"])) for number in range(count)}


def rows(dice: Random, kinds: dict[str, str], count: int) -> list[dict[str, Any]]:
    """Rows of these columns as mappings and JSON may give them."""
    types = {name: parse_type(kind) for name, kind in kinds.items()}
    return [{name: _value(dice, kind) for name, kind in types.items()} for _ in range(count)]


def shown(row: dict[str, Any], kinds: dict[str, str]) -> list[Any]:
    """Return a row as Hive's reader answers it: structs without names, maps as pairs."""
    return [_shown(row[name], parse_type(kind)) for name, kind in kinds.items()]


def in_order(values: list[Any], kinds: dict[str, str]) -> list[Any]:
    """Sort the maps of a row that Hive's reader answered by their keys."""
    return [_in_order(value, parse_type(kind)) for value, kind in zip(values, kinds.values(), strict=True)]


def _kind(dice: Random, depth: int, what: str = "") -> str:
    if not depth:
        return dice.choice(_LEAVES)
    match what or dice.choice(["array", "map", "struct", "struct", "leaf"]):
        case "array":
            return f"array<{_kind(dice, depth - 1)}>"
        case "map":
            return f"map<{dice.choice(['string', 'int'])},{_kind(dice, depth - 1)}>"
        case "struct":
            return f"struct<{','.join(f'f{number}:{_kind(dice, depth - 1)}' for number in range(dice.randint(1, 3)))}>"
        case _:
            return dice.choice(_LEAVES)


def _value(dice: Random, kind: HiveType) -> Any:
    if dice.random() < 0.3:
        return None
    number = dice.randint(1, 99)
    match kind.kind:
        case "struct":
            return {name: _value(dice, child) for name, child in zip(kind.names, kind.children, strict=True)}
        case "array":
            return [_value(dice, kind.children[0]) for _ in range(dice.randint(0, 3))]
        case "map":
            return {f"{'k' if kind.children[0].kind == 'string' else ''}{key}": _value(dice, kind.children[1])
                    for key in range(dice.randint(0, 3))}
        case name:
            return _LEAF.get(name, lambda one: one)(number)


def _shown(value: Any, kind: HiveType) -> Any:
    if value is None or not kind.children:
        return value
    match kind.kind:
        case "struct":
            return [_shown(value[name], child) for name, child in zip(kind.names, kind.children, strict=True)]
        case "array":
            return [_shown(each, kind.children[0]) for each in value]
        case _:
            to_key = str if kind.children[0].kind == "string" else int
            return [[to_key(key), _shown(each, kind.children[1])] for key, each in value.items()]


def _in_order(value: Any, kind: HiveType) -> Any:
    if value is None or not kind.children:
        return value
    match kind.kind:
        case "struct":
            return [_in_order(each, child) for each, child in zip(value, kind.children, strict=True)]
        case "array":
            return [_in_order(each, kind.children[0]) for each in value]
        case _:
            return sorted([key, _in_order(each, kind.children[1])] for key, each in value)
