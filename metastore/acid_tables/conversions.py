"""Conversions of a file's values to the table's present type, as ORC's Java reader shows them to Hive and Spark. Pure.

Rule: only this table decides what old files show after a change of a column's type; a pair that is not in it is
refused. A value that the new type does not hold is NULL; decimals are rounded half up; texts are cut. Source: ORC's
ConvertTreeReaderFactory. The tests compare the answers of Hive's reader and of Spark, too.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from metastore.acid.types import HiveType
from metastore.acid_tables.arrow_types import arrow_type
from metastore.acid_tables.calendars import in_microseconds, with_items
from metastore.errors import InvalidOperationError

_Conversion: TypeAlias = Callable[[pa.Array, HiveType], pa.Array]

_LIMITED = ("char", "varchar")
_EXACT, _BEYOND_ALL = Context(prec=78), Decimal(10) ** 38
_REAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?)", re.ASCII)
"""What Java's parseDouble reads, hexadecimal numbers aside."""

_BLANKS = "".join(map(chr, range(33)))
"""What Java's trim takes away."""

_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e7
"""Between these Java writes numbers without an exponent."""


def fitted(values: pa.Array, kind: HiveType) -> pa.Array:
    """Convert values of a file to a type; fields of structs are known by their names.

    Raises: InvalidOperationError if the type of the file cannot be read as this one.
    """
    wanted = arrow_type(kind, "")
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), wanted)
    if pa.types.is_struct(wanted) and pa.types.is_struct(values.type):
        return _fitted_struct(values, kind, wanted)
    if pa.types.is_map(wanted) and pa.types.is_map(values.type):
        entries = [fitted(part, child) for part, child in zip((values.keys, values.items), kind.children, strict=True)]
        return with_items(
            values, wanted, pa.StructArray.from_arrays(entries, fields=[wanted.key_field, wanted.item_field])
        )
    if pa.types.is_list(wanted) and pa.types.is_list(values.type):
        return with_items(values, wanted, fitted(values.values, kind.children[0]))
    if values.type == wanted and kind.kind not in _LIMITED:
        return values
    conversion = _TABLE.get((_family(values.type), _family(wanted)))
    if conversion is None:
        raise InvalidOperationError(
            f"Files hold {values.type} where the table has {kind.kind} now, which is read by Spark and Hive alone: "
            "let a major compaction write the files anew."
        )
    return conversion(values, kind)


def _fitted_struct(values: pa.Array, kind: HiveType, wanted: pa.StructType) -> pa.Array:
    here = {field.name.lower(): array for field, array in zip(values.type, values.flatten(), strict=True)}
    fields = [
        fitted(here[field.name], child) if field.name in here else pa.nulls(len(values), field.type)
        for field, child in zip(wanted, kind.children, strict=True)
    ]
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=values.is_null())


def _family(kind: pa.DataType) -> str:
    return next((name for name, belongs in _FAMILIES.items() if belongs(kind)), str(kind))


_FAMILIES: Mapping[str, Callable[[pa.DataType], bool]] = {
    "truth": pa.types.is_boolean,
    "whole": pa.types.is_integer,
    "real": pa.types.is_floating,
    "decimal": pa.types.is_decimal,
    "text": lambda kind: bool(pa.types.is_string(kind) or pa.types.is_large_string(kind)),
    "bytes": lambda kind: bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind)),
    "day": pa.types.is_date,
    "time": pa.types.is_timestamp,
}


def _cast(values: pa.Array, kind: HiveType) -> pa.Array:
    return values.cast(arrow_type(kind, ""), safe=False)


def _each(convert: Callable[[Any, HiveType], Any]) -> _Conversion:
    """Return a conversion that goes value by value: only old files need one."""
    return lambda values, kind: pa.array(
        [None if value is None else convert(value, kind) for value in values.to_pylist()], arrow_type(kind, "")
    )


def _within(values: pa.Array, kind: HiveType) -> pa.Array:
    """Convert whole numbers; NULL if they are out of range."""
    wanted = arrow_type(kind, "")
    limit = 1 << wanted.bit_width - 1
    wide = values.cast(pa.int64())
    if wanted.bit_width < values.type.bit_width:
        fits = pc.and_(pc.greater_equal(wide, -limit), pc.less(wide, limit))
        wide = pc.if_else(fits, wide, pa.scalar(None, pa.int64()))
    return wide.cast(wanted)


def _decimal(value: Any, kind: HiveType) -> Decimal | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = repr(value)
    precision, scale = kind.precision_and_scale
    if abs(number := Decimal(value)) >= _BEYOND_ALL:
        return None
    rounded = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None


def _rescaled(values: pa.Array, kind: HiveType) -> pa.Array:
    precision, scale = kind.precision_and_scale
    is_wider = scale >= values.type.scale and precision - scale >= values.type.precision - values.type.scale
    return _cast(values, kind) if is_wider else _each(_decimal)(values, kind)


def _whole(value: Decimal, kind: HiveType) -> int | None:
    number = int(value.to_integral_value(ROUND_DOWN))
    return number if -(limit := 1 << arrow_type(kind, "").bit_width - 1) <= number < limit else None


def _text(convert: Callable[[Any], str | None]) -> _Conversion:
    return lambda values, kind: _cut(
        pa.array([None if value is None else convert(value) for value in values.to_pylist()], pa.string()), kind
    )


def _cut(values: pa.Array, kind: HiveType) -> pa.Array:
    """Convert texts; CHAR and VARCHAR keep their first characters."""
    texts = values.cast(pa.string())
    length = kind.arguments[0] if kind.arguments else None
    if length is None or (pc.max(pc.utf8_length(texts)).as_py() or 0) <= length:
        return texts
    return pc.utf8_slice_codeunits(texts, 0, length)


def _as_java_writes(value: float) -> str | None:
    """Format a number as Double.toString does; NaN is NULL, as in ORC's reader."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return f"{Decimal(repr(value)):f}" if value else repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others) or '0'}E{int(exponent) + len(others)}"


def _trimmed(value: Decimal) -> str:
    """Format a decimal without zeros at its end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _time_text(value: datetime) -> str:
    whole = value.replace(microsecond=0).isoformat(" ")
    return f"{whole}.{value.microsecond:06}".rstrip("0") if value.microsecond else whole


def _number(value: str, kind: HiveType) -> float | None:  # noqa: ARG001 - as other conversions
    text = value.strip(_BLANKS)
    return (
        float(text.rstrip("dDfF") if not text.endswith(("Infinity", "NaN")) else text)
        if _REAL.fullmatch(text)
        else None
    )


_TABLE: Mapping[tuple[str, str], _Conversion] = {
    ("truth", "whole"): _cast,
    ("truth", "text"): _text(lambda value: str(value).upper()),
    ("whole", "whole"): _within,
    ("whole", "real"): _cast,
    ("whole", "decimal"): _each(_decimal),
    ("whole", "text"): _text(str),
    ("real", "real"): _cast,
    ("real", "decimal"): _each(_decimal),
    ("real", "text"): _text(_as_java_writes),
    ("decimal", "whole"): _each(_whole),
    ("decimal", "real"): _each(lambda value, _: float(value)),  # Arrow's own conversion is off by the last bit.
    ("decimal", "decimal"): _rescaled,
    ("decimal", "text"): _text(_trimmed),
    ("text", "text"): _cut,
    ("text", "real"): _each(_number),
    ("text", "bytes"): _cast,
    ("bytes", "text"): _cut,
    ("day", "day"): _cast,
    ("day", "time"): _cast,
    ("day", "text"): _text(lambda value: value.isoformat()),
    ("time", "day"): lambda values, _: pc.floor_temporal(in_microseconds(values), unit="day").cast(pa.date32()),
    ("time", "time"): lambda values, _: in_microseconds(values),
    ("time", "text"): lambda values, kind: _text(_time_text)(in_microseconds(values), kind),
}
