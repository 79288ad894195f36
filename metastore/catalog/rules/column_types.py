"""Column types: the known types, and the changes of a column's type that a table may undergo.

Only a type's leading word counts, as in Hive: ``decimal(10,2)`` is ``decimal``, ``array<foo>`` is ``array``.
Source: CAT-N5, CAT-A3.
"""

import re

from metastore.catalog.model import Json
from metastore.errors import InvalidObjectError

_STRINGS = {"string", "varchar", "char"}
_DATES = {"date", "datetime", "timestamp"}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
_LOCAL_ZONE = "timestamp with local time zone"
_OTHER_PRIMITIVES = {"void", "boolean", "binary", "interval_year_month", "interval_day_time", _LOCAL_ZONE}
_PRIMITIVES = _STRINGS | _DATES | set(_NUMBERS) | _OTHER_PRIMITIVES
_COMPLEX = {"array", "map", "struct", "uniontype"}
# Hive's placeholder for a table whose columns its serde derives.
_DERIVED = "<derived from deserializer>"


def leading_word(type_text: str) -> str:
    """Return the leading word of a type, which decides about the type."""
    if type_text.startswith(_LOCAL_ZONE):
        return _LOCAL_ZONE
    word = re.match(r"\w+", type_text)
    return word[0] if word else ""


def is_known(type_text: str) -> bool:
    """Return True if Hive accepts the type of a column."""
    return type_text == _DERIVED or leading_word(type_text) in _PRIMITIVES | _COMPLEX


def require_known(columns: list[Json], partition_keys: list[Json]) -> None:
    """Raise InvalidObjectError for the first column whose type is unknown."""
    for what, fields in (("column", columns), ("partition column", partition_keys)):
        for field in fields:
            if not is_known(field["type"]):
                raise InvalidObjectError(f"Invalid {what} type: {field['type']}")


def incompatible_columns(old: list[Json], new: list[Json]) -> list[str]:
    """Return the names of new columns whose type does not fit the old column in the same position."""
    return [
        column["name"]
        for before, column in zip(old, new, strict=False)
        if not _may_become(before["type"], column["type"])
    ]


def _may_become(old_type: str, new_type: str) -> bool:
    old, new = leading_word(old_type.lower()), leading_word(new_type.lower())
    if old == new:
        return True
    if old not in _PRIMITIVES or new not in _PRIMITIVES:
        return False
    if old == "void":
        return True
    if old in _NUMBERS and new in _NUMBERS:
        return _NUMBERS.index(old) < _NUMBERS.index(new)
    if new in _STRINGS:
        return old in _STRINGS or old in _DATES or old in _NUMBERS or old == _LOCAL_ZONE
    return old in _STRINGS and new == "double"
