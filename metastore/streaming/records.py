"""Parsers of records (delimited text, JSON, Python mappings, Arrow) to a table of exactly the wanted columns.

Rule: a record fits as a whole or is refused with the field that does not fit, and then none of the call's records is
taken; no value is rounded, cut or guessed. A field that a JSON record or mapping, or a column that Arrow data does not
have is its column's DEFAULT, or NULL.
"""

import base64
import binascii
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from metastore.acid.types import HiveType
from metastore.acid_tables.calendars import UNSTORABLE, has_times, leaves, unstorable
from metastore.errors import InvalidInputError, InvalidOperationError
from metastore.streaming.columns import Column
from metastore.streaming.expressions import constant

_REFUSALS = (pa.ArrowException, ValueError, TypeError, OverflowError)


class RecordError(InvalidInputError):
    """Error: a record does not fit the table. ``record`` counts from 0 within the call; ``field`` may be ""."""

    def __init__(self, record: int, field: str, reason: str) -> None:
        where = f"Record {record}, field {field}" if field else f"Record {record}"
        super().__init__(f"{where}: {reason}")
        self.record = record
        self.field = field


class RecordFormat(Protocol):
    """A format in which texts are read as records."""

    def read(self, texts: Sequence[bytes], columns: Sequence[Column]) -> pa.Table:
        """Return the records as a table of these columns. Raises: RecordError."""


@dataclass(frozen=True)
class Delimited:
    """Lines of text with a field separator, without quotes; fields in the order of the columns.

    ``null``: the text of NULL. Complex types have no such form.
    """

    field: str = ","
    null: str = r"\N"

    def read(self, texts: Sequence[bytes], columns: Sequence[Column]) -> pa.Table:
        """Read the records: see RecordFormat."""
        for column in columns:
            if column.type.children:
                raise InvalidOperationError(
                    f"Column {column.name} is of type {column.type.kind}, which delimited text "
                    "cannot hold: send JSON, mappings or Arrow."
                )
        try:
            return _checked(self._parse(texts, columns), columns)
        except (pa.ArrowException, RecordError):
            self._refuse(texts, columns)
            raise

    def _parse(self, texts: Sequence[bytes], columns: Sequence[Column]) -> pa.Table:
        content = b"\n".join(texts)
        parsed = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=[column.name for column in columns]
            ),
            parse_options=csv.ParseOptions(
                delimiter=self.field, quote_char=False, double_quote=False, escape_char=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                column_types={column.name: column.arrow for column in columns},
                null_values=[self.null],
                strings_can_be_null=True,
                true_values=["true", "TRUE", "True"],
                false_values=["false", "FALSE", "False"],
            ),
        )
        if parsed.num_rows != len(texts):
            raise pa.ArrowInvalid("a record has a line break")
        return parsed

    def _refuse(self, texts: Sequence[bytes], columns: Sequence[Column]) -> None:
        """Raise RecordError for the first record that does not fit, with its field."""
        for number, text in enumerate(texts):
            try:
                _checked(self._parse([text], columns), columns)
            except (pa.ArrowException, RecordError):
                pass
            else:
                continue
            fields = text.split(self.field.encode())
            if len(fields) != len(columns):
                raise RecordError(number, "", f"it has {len(fields)} fields, and the table takes {len(columns)}")
            for field, column in zip(fields, columns, strict=True):
                try:
                    _checked(self._parse([field], [column]), [column])
                except RecordError as error:
                    raise RecordError(number, column.name, str(error).partition(": ")[2]) from error
                except pa.ArrowException as error:
                    raise _no(number, column, field) from error


@dataclass(frozen=True)
class Json:
    """A JSON object for each record. Dates and times are texts as Hive shows them, binaries Base64, maps objects."""

    def read(self, texts: Sequence[bytes], columns: Sequence[Column]) -> pa.Table:
        """Read the records: see RecordFormat."""
        exact = any(_has_decimal(column.type) for column in columns)
        decode = json.JSONDecoder(parse_float=Decimal if exact else None).decode
        records = []
        for number, text in enumerate(texts):
            try:
                record = decode(text.decode())
            except ValueError as error:
                raise RecordError(number, "", f"it is no JSON: {error}") from error
            if not isinstance(record, dict):
                raise RecordError(number, "", f"{_shown(text)} is no JSON object")
            records.append(record)
        return from_mappings(records, columns)


def from_mappings(records: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> pa.Table:
    """Convert mappings of column names to Python's values. Raises: RecordError."""
    names = {column.name for column in columns}
    if not all(names.issuperset(record) for record in records):
        _refuse_unknown(records, names)
    return pa.table(
        [_column(_given(records, column), column) for column in columns],
        schema=pa.schema([pa.field(column.name, column.arrow) for column in columns]),
    )


def from_arrow(record_batch: pa.Table | pa.RecordBatch, columns: Sequence[Column]) -> pa.Table:
    """Convert Arrow data, its columns matched by name in any case; only exact conversions. Raises: RecordError."""
    table = record_batch if isinstance(record_batch, pa.Table) else pa.Table.from_batches([record_batch])
    at = {name.lower(): number for number, name in enumerate(table.column_names)}
    if unknown := set(at) - {column.name for column in columns}:
        raise RecordError(0, min(unknown), "the table has no such column")
    arrays = []
    for column in columns:
        if column.name not in at:
            value = pa.scalar(_default(0, column), column.arrow)
            arrays.append(pa.chunked_array([pa.repeat(value, table.num_rows)]))
            continue
        array = table.column(at[column.name])
        if pa.types.is_timestamp(array.type) and array.type.tz is not None:
            raise RecordError(
                0,
                column.name,
                f"a timestamp in time zone {array.type.tz} is an instant, and the table "
                "holds wall clocks: convert it to the zone that is meant, and drop the zone",
            )
        arrays.append(_cast(array, column))
    return _checked(pa.table(arrays, names=[column.name for column in columns]), columns)


def _given(records: Sequence[Mapping[str, Any]], column: Column) -> list[Any]:
    name = column.name
    if column.default is None:
        return [record.get(name) for record in records]
    without = next((number for number, record in enumerate(records) if name not in record), None)
    default = None if without is None else _default(without, column)
    return [record.get(name, default) for record in records]


def _default(record: int, column: Column) -> Any:
    """Return the value of a column that a record leaves out. Raises: RecordError if it is not known here."""
    if column.default is None:
        return None
    try:
        return constant(column.default, column.arrow)
    except InvalidOperationError as error:
        raise RecordError(record, column.name, f"it is left out, and its DEFAULT is not known here: {error}") from error


def lines(data: bytes) -> list[bytes]:
    """Split a block of text into records, one on each line."""
    parts = data.split(b"\n")
    if parts and not parts[-1]:
        parts.pop()
    return [line.removesuffix(b"\r") for line in parts]


def _cast(array: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if array.type == column.arrow:
        return array
    try:
        return array.cast(column.arrow)
    except _REFUSALS as error:
        for number, value in enumerate(array):
            try:
                value.cast(column.arrow)
            except _REFUSALS:
                raise _no(number, column, value.as_py()) from error
        raise RecordError(0, column.name, f"{array.type} cannot become {_spelled(column.type)}: {error}") from error


def _column(values: list[Any], column: Column) -> pa.Array:
    """Convert Python's values to an Arrow array of exactly the type."""
    kind = column.type
    convert = _converter(kind)
    try:
        as_they_are = set(map(type, values)).issubset(_EXACT.get(kind.kind, ()))
        array = pa.array(values if as_they_are else list(map(convert, values)), column.arrow)
        _require(array, column)
    except (*_REFUSALS, InvalidOperation, RecordError) as error:
        for number, value in enumerate(values):
            try:
                _require(pa.array([convert(value)], column.arrow), column)
            except RecordError as found:
                raise RecordError(number, column.name, str(found).partition(": ")[2]) from error
            except (*_REFUSALS, InvalidOperation):
                raise _no(number, column, value) from error
        raise
    return array


_NONE = type(None)
_EXACT: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), (int, _NONE)),
    "boolean": (bool, _NONE),
    **dict.fromkeys(("string", "char", "varchar"), (str, _NONE)),
    **dict.fromkeys(("float", "double"), (float, _NONE)),
}
"""Python's types that become a kind as they are."""


def _converter(kind: HiveType) -> Callable[[Any], Any]:
    """Return a function that converts a value for Arrow, or raises TypeError or ValueError."""
    match kind.kind:
        case "array":
            return _each(kind.children[0])
        case "map":
            return _pairs(*kind.children)
        case "struct":
            return _fields(kind)
        case name:
            return _SCALARS.get(name) or _only(_EXACT[name])


def _only(kinds: tuple[type, ...]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(value)
        return value

    return check


def _each(kind: HiveType) -> Callable[[Any], Any]:
    convert = _converter(kind)
    return lambda values: None if values is None else [convert(value) for value in _of(values, list | tuple)]


def _pairs(key: HiveType, value: HiveType) -> Callable[[Any], Any]:
    left, right = _converter(key), _converter(value)
    text_keys = key.kind in {"string", "char", "varchar"}

    def convert(value: Any) -> Any:
        if value is None:
            return None
        pairs = value.items() if isinstance(value, Mapping) else _of(value, list | tuple)
        return [(left(key_value if text_keys else _key(key_value, key)), right(other)) for key_value, other in pairs]

    return convert


def _key(text: Any, kind: HiveType) -> Any:
    """Convert a key of a JSON object, which is always a text, to its type."""
    if isinstance(text, str) and kind.kind in {"tinyint", "smallint", "int", "bigint"}:
        return int(text)
    return text


def _fields(kind: HiveType) -> Callable[[Any], Any]:
    converters = {name.lower(): _converter(child) for name, child in zip(kind.names, kind.children, strict=True)}

    def convert(value: Any) -> Any:
        if value is None:
            return None
        record = _of(value, Mapping)
        if unknown := set(record) - set(converters):
            raise ValueError(unknown)
        return {name: convert(record.get(name)) for name, convert in converters.items()}

    return convert


def _of(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


def _float(value: Any) -> Any:
    if value is None or type(value) is float:
        return value
    return float(_of(value, int | Decimal)) if not isinstance(value, bool) else _of(value, float)


def _decimal(value: Any) -> Any:
    if value is None or isinstance(value, Decimal):
        return value
    return Decimal(_of(value, str | int)) if not isinstance(value, bool) else _of(value, Decimal)


def _date(value: Any) -> Any:
    if isinstance(value, str):
        return date.fromisoformat(value)
    return value if value is None or type(value) is date else _of(None, date)


def _timestamp(value: Any) -> Any:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment is not None and _of(moment, datetime).tzinfo is not None:
        raise ValueError(value)
    return moment


def _binary(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(value) from error
    return value if value is None else _of(value, bytes)


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "binary": _binary,
}


def _checked(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    for column in columns:
        _require(table.column(column.name), column)
    return table


def _require(array: pa.Array | pa.ChunkedArray, column: Column) -> None:
    """Raise RecordError for values that Arrow accepts and the type does not: long texts, long decimals."""
    kind = column.type
    if kind.kind == "decimal":
        limit = pa.scalar(Decimal(10) ** (column.arrow.precision - column.arrow.scale))
        _refuse_first(
            array,
            pc.greater_equal(pc.abs(array.cast(pa.decimal256(70, column.arrow.scale))), limit),
            column,
            f"does not fit in {_spelled(kind)}",
        )
    elif kind.kind in {"char", "varchar"} and kind.arguments:
        _refuse_first(
            array, pc.greater(pc.utf8_length(array), kind.arguments[0]), column, f"is longer than {_spelled(kind)}"
        )
    elif kind.children and _has_decimal(kind):
        array.validate(full=True)
    if has_times(column.arrow):
        _require_storable(array, column)


def _require_storable(array: pa.Array | pa.ChunkedArray, column: Column) -> None:
    """Raise RecordError for a date or time, at any depth, that ORC files cannot hold."""
    first = 0
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        if _is_unstorable(chunk):
            at = next(at for at in range(len(chunk)) if _is_unstorable(chunk.slice(at, 1)))
            raise RecordError(first + at, column.name, f"{_shown(chunk[at].as_py())} cannot be stored: {UNSTORABLE}")
        first += len(chunk)


def _is_unstorable(array: pa.Array) -> bool:
    return any(pc.any(unstorable(times)).as_py() for _, times in leaves(array))


def _refuse_first(array: pa.Array | pa.ChunkedArray, wrong: Any, column: Column, reason: str) -> None:
    at = int(pc.index(wrong, value=True).as_py())
    if at >= 0:
        raise RecordError(at, column.name, f"{_shown(array[at].as_py())} {reason}")


def _refuse_unknown(records: Iterable[Mapping[str, Any]], names: set[str]) -> None:
    for number, record in enumerate(records):
        for field in record:
            if field not in names:
                raise RecordError(number, str(field), "the table has no such column")


def _has_decimal(kind: HiveType) -> bool:
    return kind.kind == "decimal" or any(_has_decimal(child) for child in kind.children)


def _no(record: int, column: Column, value: Any) -> RecordError:
    return RecordError(record, column.name, f"{_shown(value)} is no {_spelled(column.type)}")


def _spelled(kind: HiveType) -> str:
    return f"{kind.kind}({','.join(map(str, kind.arguments))})" if kind.arguments else kind.kind


def _shown(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= 40 else f"{text[:37]}...")  # noqa: PLR2004 - a line's worth
