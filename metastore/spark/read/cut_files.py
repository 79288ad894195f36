"""Files to which a streaming writer of Hive still appends; they are read up to the last footer that it flushed.

Rule: bytes behind the flushed length are never read. Spark's ORC reader cannot stop there, so Python reads these files
(few and short-lived: one per open batch and bucket) in the tasks, as rows.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampNTZType, TimestampType

from metastore.acid_tables.footers import damage_named
from metastore.acid_tables.orc_rows import OrcRows
from metastore.acid_tables.sources import CutFile, committed_bytes
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.jvm.compiled import jvm_of

_BATCH_ROWS = 10_000


def cut_events(spark: SparkSession, schema: StructType, files: Sequence[CutFile]) -> DataFrame:
    """Return the events of the files' committed parts, with the columns of ``schema``; missing columns are NULL.

    Raises: InvalidOperationError for timestamps when the session's time zone is not the JVM's.
    """
    wall_clock = _without_zone(schema)
    if wall_clock != schema:
        _require_one_zone(spark)
    rows = spark.sparkContext.parallelize(list(files), len(files)).flatMap(partial(_events, schema=wall_clock))
    frame = spark.createDataFrame(rows, wall_clock)
    return frame.select(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema.fields))


def _events(file: CutFile, schema: StructType) -> Iterator[tuple[Any, ...]]:
    content = committed_bytes(Files(), file)
    with damage_named(file.path):
        stripes = OrcRows(pa.BufferReader(content))
    for at in range(stripes.nstripes):
        with damage_named(file.path):
            table = pa.Table.from_batches([stripes.read_stripe(at)])
        for batch in table.to_batches(_BATCH_ROWS):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                yield _shaped(row, schema)


def _shaped(value: Any, kind: DataType) -> Any:
    """Return a value in Spark's form: structs as tuples in the order of the type, matched by name."""
    match kind:
        case StructType() if value is not None:
            by_name = {name.lower(): member for name, member in value.items()}
            return tuple(_shaped(by_name.get(field.name.lower()), field.dataType) for field in kind.fields)
        case ArrayType() if value is not None:
            return [_shaped(element, kind.elementType) for element in value]
        case MapType() if value is not None:
            return {_shaped(key, kind.keyType): _shaped(member, kind.valueType) for key, member in value.items()}
        case _:
            return value


def _without_zone(kind: StructType) -> StructType:
    """Return the type with timestamps as local times, as ORC holds them."""
    return StructType([StructField(field.name, _wall_clock(field.dataType)) for field in kind.fields])


def _wall_clock(kind: DataType) -> DataType:
    match kind:
        case TimestampType():
            return TimestampNTZType()
        case ArrayType():
            return ArrayType(_wall_clock(kind.elementType))
        case MapType():
            return MapType(_wall_clock(kind.keyType), _wall_clock(kind.valueType))
        case StructType():
            return _without_zone(kind)
        case _:
            return kind


def _require_one_zone(spark: SparkSession) -> None:
    """Raise unless the session's time zone is the JVM's.

    ORC files hold local times. Spark's own reader takes them for the JVM's zone, a cast for the session's zone.
    """
    zones = jvm_of(spark).java.time.ZoneId  # only the JVM knows its zone
    session, machine = str(spark.conf.get("spark.sql.session.timeZone")), zones.systemDefault()
    if not zones.of(session).getRules().equals(machine.getRules()):
        raise InvalidOperationError(
            f"A streaming writer has not closed its files, and timestamps in them can be read only when the session's "
            f"time zone ({session}) is the JVM's ({machine.getId()}): set spark.sql.session.timeZone, or wait."
        )
