"""A list of conditions on partition keys, as a client writes it: all of them must hold. Pure.

Rule: ``conjunction`` leaves out what surely does not meet them, for an engine that filters the rows; ``exactly``
decides every condition or refuses it, where no engine comes after.
"""

import operator
import reprlib
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from metastore.acid.types import parse_type
from metastore.acid_tables.arrow_types import arrow_type, partition_scalar
from metastore.acid_tables.pruning import AnyOf, Comparison, Missing, Restriction, Values, all_of, typed
from metastore.acid_tables.table import HiveColumn
from metastore.errors import InvalidInputError, InvalidOperationError

_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
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
    """``[["d", ">=", "2026-01-01"], ["r", "in", "a", "b"]]`` as a restriction; None: every partition is left.

    A condition with a value that is not spelled as the key's type spells it is left out: the engine filters the rows.
    So is the order of a CHAR, in which its blanks at the end count or not, as the engine's settings are.
    Raises: InvalidInputError for any other form, or a column that is no partition key.
    """
    places = {key.name: place for place, key in enumerate(keys)}
    return all_of([part for condition in conditions if (part := _condition(condition, places, keys)) is not None])


def exactly(conditions: Sequence[Any], keys: Sequence[HiveColumn]) -> Callable[[Values], bool]:
    """Return a function that says if a partition with some values meets all conditions, for a reader without an engine.

    Raises: as ``conjunction``; InvalidInputError for a value that is not one of the key's type. The function raises
        InvalidOperationError for a partition whose value is not one of its key's type.
    """
    places = {key.name: place for place, key in enumerate(keys)}
    fields = [pa.field(key.name, arrow_type(parse_type(key.type), key.name)) for key in keys]
    blanks = [" " if parse_type(key.type).kind == "char" else "" for key in keys]
    tests = []
    for condition in conditions:
        place, holds, texts = _parsed(condition, places)
        constants = [_constant(text, fields[place], keys[place].type, blanks[place]) for text in texts]
        tests.append((place, _COMPARED.get(holds), constants))

    def meets(values: Values) -> bool:
        for place, compared, constants in tests:
            text = values[place]
            value = None if text is None else _comparable(partition_scalar(text, fields[place]), blanks[place])
            if compared is None or value is None:
                if compared is not None or value is not None:
                    return False
            elif not any(compared(value, constant) for constant in constants):
                return False
        return True

    return meets


def _constant(text: str, field: pa.Field, declared: str, blanks: str) -> Any:
    try:
        return _comparable(partition_scalar(text, field), blanks)
    except InvalidOperationError as error:
        raise InvalidInputError(
            f"{text!r} is no value of the partition key {field.name}, which is a {declared}: write it "
            "as the type does, a DATE like 2026-01-31."
        ) from error


def _comparable(scalar: pa.Scalar, blanks: str) -> Any:
    """Return a value that compares as in Hive and Spark: NaN is one value, above all numbers; a CHAR has no blanks."""
    value = scalar.as_py()
    if isinstance(value, float):
        return (isnan(value), 0.0 if isnan(value) else value)
    return value.rstrip(blanks) if blanks else value


def _parsed(condition: Any, places: Mapping[str, int]) -> tuple[int, str, list[str]]:
    """Return the key's place, the operator and the texts of a condition.  Raises: InvalidInputError."""
    if not isinstance(condition, list) or len(condition) < _KEY_AND_OPERATOR:
        raise InvalidInputError(f"A condition on a partition key is {_FORM}, not {reprlib.repr(condition)}.")
    if not all(isinstance(part, str) for part in condition):
        raise InvalidInputError(f"A condition on a partition key is {_FORM} with texts, not {reprlib.repr(condition)}.")
    name, holds, *texts = condition
    if name not in places:
        raise InvalidInputError(f"{name} is not a partition key: those are {', '.join(places) or 'none'}.")
    is_null_test = holds == _IS_NULL and not texts
    if not is_null_test and (holds not in _COMPARED or not texts or (holds != "in" and len(texts) > 1)):
        raise InvalidInputError(f"A condition on a partition key is {_FORM}, not {reprlib.repr(condition)}.")
    return places[name], holds, texts


def _condition(condition: Any, places: Mapping[str, int], keys: Sequence[HiveColumn]) -> Restriction | None:
    place, holds, texts = _parsed(condition, places)
    kind = parse_type(keys[place].type)
    if holds == _IS_NULL:
        return Missing(place, kind)
    if kind.kind == "char" and holds not in _EQUALITIES:
        return None
    constants = [typed(text, kind) for text in texts]
    parts = tuple(Comparison(place, kind, _COMPARED[holds], constant) for constant in constants if constant is not None)
    if len(parts) < len(texts):
        return None
    return AnyOf(parts) if len(parts) > 1 else parts[0]
