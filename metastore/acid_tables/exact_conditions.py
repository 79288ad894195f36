"""Conditions on partition keys for a reader without an engine: the key's value decides each, or it is refused."""

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from metastore.acid.types import parse_type
from metastore.acid_tables.arrow_types import arrow_type, partition_scalar
from metastore.acid_tables.conjunction import COMPARED, parsed
from metastore.acid_tables.pruning import Values
from metastore.acid_tables.table import HiveColumn
from metastore.errors import InvalidInputError, InvalidOperationError


def exactly(conditions: Sequence[Any], keys: Sequence[HiveColumn]) -> Callable[[Values], bool]:
    """Return a predicate of partition values that meets all conditions exactly, for a reader without an engine.

    Raises: as ``conjunction``; InvalidInputError for a value that is not one of the key's type. The predicate raises
    InvalidOperationError for a partition whose value is not one of its key's type.
    """
    places = {key.name: place for place, key in enumerate(keys)}
    fields = [pa.field(key.name, arrow_type(parse_type(key.type), key.name)) for key in keys]
    blanks = [" " if parse_type(key.type).kind == "char" else "" for key in keys]
    tests = []
    for condition in conditions:
        place, holds, texts = parsed(condition, places)
        constants = [_constant(text, fields[place], keys[place].type, blanks[place]) for text in texts]
        tests.append((place, COMPARED.get(holds), constants))

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
