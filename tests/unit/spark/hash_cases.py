"""Rows with the bucket that the rule puts them in, for the same hash in Java: every type, by both versions."""

import base64
import math
import random
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from metastore.acid.hashes import bucket_of
from metastore.acid.types import HiveType, parse_type

_TEXTS = ["", "a", "ab", "abc", "abcd", "Ünïcode", "日本語", "\x7f\x80", "trailing  ", "é" * 7]
_SQL = {"varchar": "STRING", "char": "STRING"}
_COUNT = 97
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_SINGLE: dict[str, Callable[[random.Random], Any]] = {
    "boolean": lambda chance: chance.random() < 0.5,
    "float": lambda chance: chance.choice([0.0, -1.5, 0.25, 1024.0, math.nan, -0.0]),
    "double": lambda chance: chance.choice([0.0, -1.5, 1e300, math.nan, chance.random()]),
    "date": lambda chance: date(1, 1, 1) + timedelta(days=chance.randrange(3_650_000)),
    "timestamp": lambda chance: datetime(1900, 1, 1) + timedelta(microseconds=chance.randrange(8 * 10**15)),
    "binary": lambda chance: chance.randbytes(chance.randrange(12)),
}


def cases(seed: int = 1, rows: int = 40) -> Iterator[dict[str, Any]]:
    """``types`` of Hive's, ``sql`` of Spark's, ``values`` as texts, ``version``, ``count``, ``bucket``."""
    chance = random.Random(seed)
    single = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "string", "varchar(20)", "char(20)",
              "binary", "decimal(10,2)", "decimal(38,10)", "array<int>", "struct<a:string,b:bigint>", "map<string,int>",
              "array<struct<a:char(3),b:decimal(5,1)>>"]
    sets = [[kind] for kind in [*single, "timestamp"]] + [["int", "string"], ["bigint", "date", "boolean"], ["string", "int", "string"]]
    for names in sets:
        types = [parse_type(name) for name in names]
        for version in (1, 2):
            if version == 2 and "timestamp" in names:
                continue
            for _ in range(rows):
                values = [None if chance.random() < 0.1 else _value(kind, chance) for kind in types]
                yield {
                    "types": names, "sql": [_sql(kind) for kind in types], "version": version, "count": _COUNT,
                    "values": [_text(value, kind) for value, kind in zip(values, types, strict=True)],
                    "bucket": bucket_of(values, types, _COUNT, version),
                }


def _value(kind: HiveType, chance: random.Random) -> Any:
    match kind.kind:
        case "array":
            return [_value(kind.children[0], chance) if chance.random() < 0.8 else None for _ in range(chance.randrange(4))]
        case "map":
            return {_value(kind.children[0], chance): _value(kind.children[1], chance) for _ in range(chance.randrange(4))}
        case "struct":
            return tuple(_value(child, chance) for child in kind.children)
        case "string" | "varchar" | "char":
            return chance.choice(_TEXTS)[:kind.arguments[0] if kind.arguments else None]
        case "decimal":
            precision, scale = kind.arguments
            return Decimal(chance.choice([0, -1, 10**scale, 12300, chance.randrange(10**(precision - 1))])).scaleb(-scale)
        case name if name in _BITS:
            half = 2 ** (_BITS[name] - 1)
            return chance.choice([0, -1, 1, half - 1, chance.randrange(-half, half)])
        case name:
            return _SINGLE[name](chance)


def _sql(kind: HiveType) -> str:
    match kind.kind:
        case "array" | "map":
            return f"{kind.kind}<{','.join(_sql(child) for child in kind.children)}>"
        case "struct":
            return f"struct<{','.join(f'{name}:{_sql(child)}' for name, child in zip(kind.names, kind.children, strict=True))}>"
        case "decimal":
            return f"decimal({','.join(map(str, kind.arguments))})"
        case name:
            return _SQL.get(name, name)


def _text(value: Any, kind: HiveType) -> Any:
    if value is None:
        return None
    match kind.kind:
        case "array":
            return [_text(item, kind.children[0]) for item in value]
        case "map":
            return [[_text(key, kind.children[0]), _text(item, kind.children[1])] for key, item in value.items()]
        case "struct":
            return [_text(item, child) for item, child in zip(value, kind.children, strict=True)]
        case "binary":
            return base64.b64encode(value).decode()
        case "float" | "double":
            return "NaN" if math.isnan(value) else repr(value)
        case "decimal":
            return f"{value:f}"
        case _:
            return str(value).lower() if kind.kind == "boolean" else str(value)

