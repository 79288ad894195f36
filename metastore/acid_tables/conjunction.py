"""A list of conditions on partition keys, as a client writes it: all of them must hold. Pure.

Rule: partitions that certainly do not meet them are left out, for an engine that filters the rows. Without an engine,
`exact_conditions` decides.
"""

import operator
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metastore.acid.types import parse_type
from metastore.acid_tables.pruning import KeyComparison, Missing, OrRestriction, Restriction, all_of, typed
from metastore.acid_tables.table import HiveColumn
from metastore.errors import InvalidInputError

COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "in": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUALITIES = ("=", "in")
_FORM = '["key", "=", "value"], ["key", "in", "value", ...] or ["key", "is null"]'
_IS_NULL = "is null"
_KEY_AND_OPERATOR = 2


def conjunction(conditions: Sequence[Any], keys: Sequence[HiveColumn]) -> Restriction | None:
    """Parse ``[["d", ">=", "2026-01-01"], ["r", "in", "a", "b"]]`` to a restriction; None: every partition is left.

    A condition with a value in another spelling than that of the key's type is left out: the engine filters the rows.
    So is the order of a CHAR, in which the engine's settings decide if blanks at the end count.
    Raises: InvalidInputError for any other form, or a column that is no partition key.
    """
    places = {key.name: place for place, key in enumerate(keys)}
    return all_of([part for condition in conditions if (part := _condition(condition, places, keys)) is not None])


def parsed(condition: Any, places: Mapping[str, int]) -> tuple[int, str, list[str]]:
    """Return the key's position, the operator and the texts of a condition. Raises: InvalidInputError."""
    if not isinstance(condition, list) or len(condition) < _KEY_AND_OPERATOR:
        raise InvalidInputError(f"A condition on a partition key is {_FORM}, not {reprlib.repr(condition)}.")
    if not all(isinstance(part, str) for part in condition):
        raise InvalidInputError(f"A condition on a partition key is {_FORM} with texts, not {reprlib.repr(condition)}.")
    name, holds, *texts = condition
    if name not in places:
        raise InvalidInputError(f"{name} is not a partition key: those are {', '.join(places) or 'none'}.")
    is_null_test = holds == _IS_NULL and not texts
    if not is_null_test and (holds not in COMPARED or not texts or (holds != "in" and len(texts) > 1)):
        raise InvalidInputError(f"A condition on a partition key is {_FORM}, not {reprlib.repr(condition)}.")
    return places[name], holds, texts


def _condition(condition: Any, places: Mapping[str, int], keys: Sequence[HiveColumn]) -> Restriction | None:
    place, holds, texts = parsed(condition, places)
    kind = parse_type(keys[place].type)
    if holds == _IS_NULL:
        return Missing(place, kind)
    if kind.kind == "char" and holds not in _EQUALITIES:
        return None
    constants = [typed(text, kind) for text in texts]
    parts = tuple(
        KeyComparison(place, kind, COMPARED[holds], constant) for constant in constants if constant is not None
    )
    if len(parts) < len(texts):
        return None
    return OrRestriction(parts) if len(parts) > 1 else parts[0]
