"""Classes that may store an insert-only table: input format, output format and SerDe. Pure.

Rule: every process that reads, writes or compacts such a table loads these classes, so a definition may name known
classes only; the operator may list more. The check runs when a definition is stored, in the Worker, and in the process
that loads the classes (``SerdeTable.java``). A full ACID table is stored as ORC, whose classes are never loaded by name
(``transactional``).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

from metastore.acid.table_kinds import is_insert_only
from metastore.catalog.model import Json, Parameters
from metastore.errors import MetaError

Classes: TypeAlias = tuple[str, str, str]
"""Input format, output format, SerDe."""

_IO, _SERDE, _MAPRED = "org.apache.hadoop.hive.ql.io", "org.apache.hadoop.hive.serde2", "org.apache.hadoop.mapred"
_OF_TEXT = (
    f"{_SERDE}.lazy.LazySimpleSerDe",
    f"{_SERDE}.OpenCSVSerde",
    f"{_SERDE}.RegexSerDe",
    f"{_SERDE}.MultiDelimitSerDe",
    "org.apache.hadoop.hive.contrib.serde2.MultiDelimitSerDe",
    f"{_SERDE}.JsonSerDe",
    "org.apache.hive.hcatalog.data.JsonSerDe",
)
FORMATS = (
    (
        (f"{_MAPRED}.TextInputFormat",),
        (f"{_IO}.HiveIgnoreKeyTextOutputFormat", f"{_IO}.IgnoreKeyTextOutputFormat"),
        _OF_TEXT,
    ),
    (
        (f"{_MAPRED}.SequenceFileInputFormat",),
        (f"{_IO}.HiveSequenceFileOutputFormat", f"{_MAPRED}.SequenceFileOutputFormat"),
        (*_OF_TEXT, f"{_SERDE}.lazybinary.LazyBinarySerDe"),
    ),
    (
        (f"{_IO}.RCFileInputFormat",),
        (f"{_IO}.RCFileOutputFormat",),
        (f"{_SERDE}.columnar.LazyBinaryColumnarSerDe", f"{_SERDE}.columnar.ColumnarSerDe"),
    ),
    (
        (f"{_IO}.avro.AvroContainerInputFormat",),
        (f"{_IO}.avro.AvroContainerOutputFormat",),
        (f"{_SERDE}.avro.AvroSerDe",),
    ),
    ((f"{_IO}.orc.OrcInputFormat",), (f"{_IO}.orc.OrcOutputFormat",), (f"{_IO}.orc.OrcSerde",)),
    (
        (f"{_IO}.parquet.MapredParquetInputFormat",),
        (f"{_IO}.parquet.MapredParquetOutputFormat",),
        (f"{_IO}.parquet.serde.ParquetHiveSerDe",),
    ),
)
"""Input formats, output formats and SerDes that go with each other."""

LISTED: frozenset[Classes] = frozenset(classes for one in FORMATS for classes in product(*one))
SCHEMA_URL = "avro.schema.url"


def refused_storage(sd: Mapping[str, Any] | None, parameters: Parameters, more: Iterable[Classes] = ()) -> str | None:
    """Return the reason why an insert-only table cannot use this storage; None if it can.

    ``sd``: the descriptor of the table or of one of its partitions, None where there is none. ``parameters``: the
    table's. ``more``: what the operator allows besides.
    """
    if not is_insert_only(parameters) or sd is None:
        return None
    classes, serde_parameters = _named(sd)
    if not any(_is_of(classes, listed) for listed in (*LISTED, *more)):
        return (
            f"An insert-only table cannot be stored by the classes {', '.join(map(repr, classes))}, which every reader "
            "would load: use a known format (STORED AS ORC, PARQUET, TEXTFILE, AVRO, SEQUENCEFILE, RCFILE, JSONFILE), "
            "or let the operator allow them by metastore.storage.classes"
        )
    if SCHEMA_URL in serde_parameters or SCHEMA_URL in parameters:
        return (
            f"An insert-only table cannot have {SCHEMA_URL}, which every reader would open: put the schema itself into "
            "avro.schema.literal"
        )
    return None


def require_storage(
    name: object,
    sd: Mapping[str, Any] | None,
    parameters: Parameters,
    more: Iterable[Classes],
    known: Iterable[tuple[Mapping[str, Any] | None, Parameters]] = (),
) -> None:
    """Raise MetaError for a storage that is refused; ``known``: descriptors with parameters that are there already."""
    refused = refused_storage(sd, parameters, more)
    if refused is not None and refused not in _refused(known, more):
        raise MetaError(f"{name}: {refused}")


def _refused(known: Iterable[tuple[Mapping[str, Any] | None, Parameters]], more: Iterable[Classes]) -> Iterator[str]:
    return (text for sd, parameters in known if (text := refused_storage(sd, parameters, more)) is not None)


def _is_of(classes: Classes, listed: Classes) -> bool:
    """Return True if the classes are in the list; a class that is not named is never loaded."""
    return all(name in ("", known) for name, known in zip(classes, listed, strict=True))


def _named(sd: Mapping[str, Any]) -> tuple[Classes, Json]:
    serde = sd.get("serdeInfo") or {}
    classes = (sd.get("inputFormat") or "", sd.get("outputFormat") or "", serde.get("serializationLib") or "")
    return classes, serde.get("parameters") or {}
