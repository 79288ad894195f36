"""A Spark scan over files that have been listed already, each with the number of its ACID directory.

Rules. Nothing is listed twice: Spark gets the files of a scan with their sizes, however many directories they are in.
The number of a file's directory is passed as the file's modification time, which ORC never reads. To Spark that is a
constant of the file. So a condition on the number, or on a value that is looked up by the number (a partition key),
skips whole files before any is opened. A scan has the event's columns, then the table's, and reads only those that a
query uses (see ``AcidOrcFormat.java``). Spark takes scans with the same root path for equal, so the path is a digest of
the files.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.events import EVENT_TYPES
from metastore.acid.protobuf import bytes_field, number_field
from metastore.acid_tables.delete_files import SMALL
from metastore.acid_tables.table import OURS, HiveColumn, quoted
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.messages import to_java
from metastore.spark.tables.row_id import BY, OPERATION, ROW_ID

DIRECTORY_NUMBER = "CAST(unix_millis(_metadata.file_modification_time) AS INT)"
"""The number of a row's directory, as SQL for a scan."""

_EVENT_FIELDS = ", ".join(
    (*map(" ".join, zip((OPERATION, *ROW_ID, BY), EVENT_TYPES, strict=True)), f"{OURS}deleted BOOLEAN NOT NULL")
)
"""The columns before the table's: an event's fields in ORC's order, and a flag for deleted rows."""

NOWHERE = "file:/.acid_files_that_are_listed_already"
_IS_FILE, _READABLE = number_field(1, 2), bytes_field(4, number_field(1, 0o644))


class NumberedFile(NamedTuple):
    """A file, its size, and the number of its directory."""

    path: str
    size: int
    number: int


def scan_files(
    spark: SparkSession,
    columns: Sequence[HiveColumn],
    files: Sequence[NumberedFile],
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    where: Sequence[str] = (),
) -> DataFrame:
    """Return the events that meet all of ``where``; the columns are ``before``, ``columns``, then ``after``.

    For Spark a scan of ``columns`` alone looks like a scan of flat files.
    """
    content = file_statuses(files)
    name = sha256(content).hexdigest()
    session = spark._jsparkSession  # noqa: SLF001
    frame = java_object(spark, "AcidOrcFormat").scan(
        session,
        f"{NOWHERE}/{name}",
        content,
        _EVENT_FIELDS if before or after or where else "",
        ", ".join(f"{quoted(column.name)} {column.sql_type}" for column in columns),
        None,  # the scan leaves no rows out
        0,
        SMALL,
        " AND ".join(where),
        to_java(list(before)),
        to_java(list(after)),
    )
    return DataFrame(frame, spark)


def value_by_number(values: Sequence[str | None], kind: str) -> str:
    """Return the value of a file's directory in ``values``, as SQL.

    It is constant within a file, so it prunes files.
    """
    return f"get(CAST(array({', '.join(map(text_value, values))}) AS ARRAY<{kind}>), {DIRECTORY_NUMBER})"


def text_value(text: str | None) -> str:
    """Return a text as SQL that needs no escapes."""
    return "NULL" if text is None else f"CAST(X'{text.encode().hex()}' AS STRING)"


def file_statuses(files: Sequence[NumberedFile]) -> bytes:
    """Return the files as ``FileStatus`` objects, in Hadoop's format for an array of them."""
    content = bytearray(len(files).to_bytes(4, "big"))
    for file in files:
        status = (
            _IS_FILE
            + bytes_field(2, file.path.encode())
            + number_field(3, file.size)
            + _READABLE
            + number_field(7, file.number)
        )
        content += len(status).to_bytes(4, "big") + status
    return bytes(content)
