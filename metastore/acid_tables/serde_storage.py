"""Storage of tables by Hive's own classes: input format, output format, SerDe, and their properties. Pure.

Rule: a SerDe gets the properties that Hive gives it (columns, then parameters of the SerDe, then of the table), as far
as they are known to be harmless, so that it reads and writes as it does in Hive. If a SerDe is known to have other
types than the table declares, the SerDe's types are the table's, as in Hive.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from metastore.acid.types import parse_type
from metastore.catalog.rules.storage_classes import SCHEMA_URL
from metastore.errors import InvalidOperationError

TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
LAZY_SIMPLE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
AVRO = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
JSON = "org.apache.hadoop.hive.serde2.JsonSerDe"
JSON_OF_HCATALOG = "org.apache.hive.hcatalog.data.JsonSerDe"
_COLUMNAR = "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe"
_REGEX = "org.apache.hadoop.hive.serde2.RegexSerDe"

_COLLECTION, _OLD_COLLECTION = "collection.delim", "colelction.delim"
_HEADER, _FOOTER = "skip.header.line.count", "skip.footer.line.count"
_RECORD_END = "textinputformat.record.delimiter"
_LINE_ENDS = ("", "\n", "10")
_SCHEMA = "avro.schema.literal"
_TOLD = frozenset({
    "field.delim", _COLLECTION, _OLD_COLLECTION, "mapkey.delim", "line.delim", "escape.delim", "quote.delim",
    "serialization.format", "serialization.null.format", "serialization.encoding", "serialization.escape.crlf",
    "serialization.last.column.takes.rest", "serialization.use.json.object",
    "hive.serialization.extend.nesting.levels", "hive.serialization.extend.additional.nesting.levels",
    "separatorChar", "quoteChar", "escapeChar", "input.regex", "input.regex.case.insensitive", "timestamp.formats",
    "ignore.malformed.json", _HEADER, _FOOTER, _RECORD_END, _SCHEMA,
    "avro.schema.namespace", "avro.schema.name", "avro.schema.doc",
})  # fmt: skip
"""Parameters that Hive's classes are told: delimiters, lines to leave out, the schema. All of them go into the
configuration of the file systems, too, so that any other could name a host, a file or a class."""

_BY_NAME = (AVRO, JSON, JSON_OF_HCATALOG)
"""SerDes that find a column by its name; to all others a column is a place."""
_UNTYPED = (*_BY_NAME, LAZY_SIMPLE, OPEN_CSV, _COLUMNAR, _REGEX)
"""SerDes whose files can be read with other types than they were written with."""

_WITH_LENGTH = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)
_SMALL = re.compile(r"\b(?:tiny|small)int\b", re.IGNORECASE)


CLASSES = {
    "orc": (
        "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    ),
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "textfile": (TEXT_INPUT, TEXT_OUTPUT, LAZY_SIMPLE),
    "jsonfile": (TEXT_INPUT, TEXT_OUTPUT, JSON),
    "sequencefile": (
        "org.apache.hadoop.mapred.SequenceFileInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        LAZY_SIMPLE,
    ),
    "rcfile": (
        "org.apache.hadoop.hive.ql.io.RCFileInputFormat",
        "org.apache.hadoop.hive.ql.io.RCFileOutputFormat",
        "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe",
    ),
    "avro": (
        "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
        "org.apache.hadoop.hive.ql.io.avro.AvroContainerOutputFormat",
        AVRO,
    ),
}
"""Hive's input format, output format and SerDe of the formats that tables are written in here."""


@dataclass(frozen=True)
class HiveStorage:
    """Hive's classes for a table's files, the columns (name, type) and the properties (key, value) for its SerDe."""

    input_format: str
    output_format: str
    serde: str
    columns: tuple[tuple[str, str], ...]
    properties: tuple[tuple[str, str], ...]
    is_raw: bool = False
    """True if a row is a whole record of the file, as a single text."""

    @classmethod
    def of(cls, sd: Any, columns: Iterable[tuple[str, str]], parameters: Mapping[str, str]) -> "HiveStorage":
        """Return the storage of ``sd``, a table's or partition's descriptor. Columns and parameters are the table's."""
        properties: dict[str, str] = {**dict(sd.serdeInfo.parameters or {}), **parameters}
        properties = {key: value for key, value in properties.items() if key in _TOLD or key == SCHEMA_URL}
        if _COLLECTION in properties:  # Hive before 3 spells it in another way.
            properties.setdefault(_OLD_COLLECTION, properties[_COLLECTION])
        return cls(
            sd.inputFormat or "",
            sd.outputFormat or "",
            sd.serdeInfo.serializationLib or "",
            tuple(columns),
            tuple(sorted(properties.items())),
        )

    @property
    def is_text(self) -> bool:
        """True if each row is a line."""
        return self.input_format == TEXT_INPUT

    @property
    def is_by_name(self) -> bool:
        """True if a column is known by its name in the files."""
        return self.serde in _BY_NAME

    @property
    def is_untyped(self) -> bool:
        """True if the files can be read with wider types than they were written with."""
        return self.serde in _UNTYPED

    @property
    def has_own_columns(self) -> bool:
        """True if the columns come from an Avro schema in the table's properties, not from the metastore."""
        return self.serde == AVRO and bool({_SCHEMA, SCHEMA_URL} & dict(self.properties).keys())

    def raw(self) -> "HiveStorage":
        """Return the same files as whole records, which no SerDe decodes."""
        return replace(self, is_raw=True)

    def text(self) -> str:
        """Format the storage as a text that java.util.Properties reads."""
        names = [name for name, _ in self.columns]
        properties = {
            "columns": ("\0" if any("," in name for name in names) else ",").join(names),
            "columns.types": ":".join(without_lengths(kind) for _, kind in self.columns),
            "columns.comments": "\0" * (len(names) - 1),
        }
        if any("," in name for name in names):
            properties["column.name.delimiter"] = "\0"
        properties |= {key: value for key, value in self.properties if key in _TOLD}
        properties |= {
            "serialization.lib": self.serde,
            "acid.input": self.input_format,
            "acid.output": self.output_format,
        }
        if self.is_raw:
            properties["acid.raw"] = "true"
        return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in sorted(properties.items()))

    def require_readable(self, name: object) -> None:
        """Raise InvalidOperationError for files with lines that are no rows, or with an external schema."""
        if SCHEMA_URL in dict(self.properties):
            raise InvalidOperationError(
                f"The schema of {name} is at a URL ({SCHEMA_URL}), which is never opened here: "
                f"put the schema itself into {_SCHEMA}."
            )
        if self._count(_FOOTER):
            raise InvalidOperationError(
                f"{name} leaves out lines at the end of each file (skip.footer.line.count), "
                "which this reader cannot: read it with Hive."
            )

    def require_writable(self, name: object) -> None:
        """Raise InvalidOperationError for a table that would not read back the rows written to it."""
        self.require_readable(name)
        self.require_storable(name)
        if self._count(_HEADER):
            raise InvalidOperationError(
                f"{name} leaves out the first lines of each file (skip.header.line.count): "
                "rows would be lost there. Files with such lines come by LOAD DATA in Hive."
            )
        properties = dict(self.properties)
        has_other_ends = properties.get("line.delim", "") not in _LINE_ENDS or _RECORD_END in properties
        if self.is_text and has_other_ends:
            raise InvalidOperationError(f"The rows of {name} do not end with a line's end: write it with Hive.")

    def require_storable(self, name: object) -> None:
        """Raise InvalidOperationError for columns that Hive could not read in files that Spark has written."""
        limited = [column for column, kind in self.columns if _WITH_LENGTH.search(kind)]
        if self.serde == AVRO and limited:
            raise InvalidOperationError(
                f"Column {limited[0]} of {name} is CHAR or VARCHAR. Hive reads those only from "
                "Avro files that note their length, and Spark's do not: declare it STRING."
            )

    def _count(self, key: str) -> int:
        text = dict(self.properties).get(key, "0").strip()
        if not text.isdecimal():
            raise InvalidOperationError(f"{key} is '{text}', which is no number of lines.")
        return int(text)


def stored_classes(file_format: str, serde: str | None, properties: Mapping[str, str]) -> tuple[str, str, str]:
    """Return Hive's input format, output format and SerDe of STORED AS with a ROW FORMAT.

    ``serde``, ``properties``: those of the ROW FORMAT, if any.
    Raises: InvalidOperationError for a format that is unknown, or does not go with the ROW FORMAT.
    """
    if file_format not in CLASSES:
        raise InvalidOperationError(
            f"Tables are STORED AS {', '.join(CLASSES).upper()}, or insert-only ones with INPUTFORMAT "
            f"... OUTPUTFORMAT ... and ROW FORMAT SERDE, not {file_format.upper()}."
        )
    input_format, output_format, usual = CLASSES[file_format]
    if serde is None and properties and usual != LAZY_SIMPLE:
        raise InvalidOperationError(f"ROW FORMAT DELIMITED says nothing about {file_format.upper()} files.")
    if serde not in (None, usual) and file_format in ("orc", "parquet"):
        raise InvalidOperationError(f"{file_format.upper()} files are not read by {serde}.")
    return input_format, output_format, serde or usual


def serde_properties(serde: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the SerDe's own properties: those of a statement, and one that Hive always sets."""
    return ({"serialization.format": "1"} if serde == LAZY_SIMPLE else {}) | dict(properties)


def seen_columns(serde: str, columns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return columns with the types that the SerDe reads, whatever types are declared: CSV has only strings."""
    if serde == OPEN_CSV:
        return [(name, "string") for name, _ in columns]
    if serde == AVRO:
        return [(name, _SMALL.sub("int", kind)) for name, kind in columns]
    return list(columns)


def require_seen_as_declared(serde: str, declared: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the declared columns. Raises: InvalidOperationError if the SerDe would give a column another type."""
    seen = seen_columns(serde, declared)
    for (name, kind), (_, other) in zip(declared, seen, strict=True):
        if kind != other:
            raise InvalidOperationError(
                f"{serde.rpartition('.')[2]} makes the column {name} {other}, whatever it is "
                f"declared as: declare it so, not {kind}."
            )
    return seen


def require_same_types(name: str, storage: HiveStorage, own: Sequence[tuple[str, str]]) -> None:
    """Raise InvalidOperationError if a partition's files hold other types than the table.

    ``name``: the partition's, for the message; ``storage``: the table's storage; ``own``: the partition's columns.
    """
    if storage.is_untyped:
        return
    for (column, kind), (_, here) in zip(storage.columns, own, strict=False):
        if parse_type(without_lengths(kind)) != parse_type(without_lengths(here)):
            raise InvalidOperationError(
                f"{name} was written when {column} was {here}, and its files cannot be read as "
                f"{kind}: {storage.serde} stores numbers by their type."
            )


def require_alterable(
    name: str, storage: HiveStorage, before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]
) -> None:
    """Raise InvalidOperationError if a table's files would read differently with the columns ``after``."""
    if storage.has_own_columns:
        raise InvalidOperationError(f"The columns of {name} are those of its Avro schema: change that.")
    places = {column: place for place, (column, _) in enumerate(before)}
    moved = [column for place, (column, _) in enumerate(after) if places.get(column, place) != place]
    gone = places.keys() - {column for column, _ in after}
    if len(after) < len(before) or (gone if storage.is_by_name else moved):
        raise InvalidOperationError(
            f"{name} has files that do not name their columns: columns may be added at the end, not moved or dropped."
        )
    types = dict(before)
    changed = [column for column, kind in after if column in types and parse_type(kind) != parse_type(types[column])]
    if changed and not storage.is_untyped:
        raise InvalidOperationError(
            f"{name} has files, in which {changed[0]} is {types[changed[0]]}: {storage.serde} "
            "cannot read it as another type."
        )


def without_lengths(kind: str) -> str:
    """Replace CHAR and VARCHAR by strings in a Hive type, as files have them: Hive cuts the values when it reads."""
    return _WITH_LENGTH.sub("string", kind)


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
