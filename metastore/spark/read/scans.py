"""One Spark scan over files that are known already, each with the number of the ACID directory that it belongs to.

Rules kept here. What was listed once is not listed again: Spark gets the files of a scan with their sizes, however many
directories they lie in. The number of its directory goes with a file as the time of its modification, which ORC never
looks at: to Spark that is a constant of the file, so a condition on the number, or on a value that is looked up by it
(a partition key), leaves out whole files before anything is opened. A scan has the table's own columns, with those of
the event before them, and reads what a query asks for: where it asks for no ids, none (see ``AcidOrcFormat.java``). To
Spark two scans are the same when their root path is: it is made from the files and the deleted rows.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.protobuf import bytes_field, number_field
from metastore.acid_tables.delete_files import SMALL
from metastore.acid_tables.deleted import DeletedRows
from metastore.acid_tables.table import OURS, HiveColumn, quoted
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.messages import to_java
from metastore.spark.tables.row_id import BUCKET, BY, OPERATION, ROW_NUMBER, WRITE_ID

DELETED = f"{OURS}deleted"
DIRECTORY_NUMBER = "CAST(unix_millis(_metadata.file_modification_time) AS INT)"
"""The number of the directory that a row's file belongs to, as SQL for a scan."""

_EVENT_FIELDS = (
    f"{OPERATION} INT, {WRITE_ID} BIGINT, {BUCKET} INT, {ROW_NUMBER} BIGINT, {BY} BIGINT, {DELETED} BOOLEAN NOT NULL"
)
"""What a scan has before the table's columns: an event's fields as ORC orders them, and whether its row is deleted."""

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
    deleted: DeletedRows | None = None,
) -> DataFrame:
    """The events in ACID files that meet all of ``where``: ``columns``, with what is made of an event's fields beside.

    A scan that asks for nothing but the columns is to Spark one of flat files.
    """
    content, bits = file_statuses(files), None if deleted is None else deleted.in_bytes()
    shift = 0 if deleted is None else deleted.shift
    name = sha256(b"%d,%d,%b%b" % (shift, len(content), content, bits or b"")).hexdigest()
    session = spark._jsparkSession  # noqa: SLF001
    frame = java_object(spark, "AcidOrcFormat").scan(
        session,
        f"{NOWHERE}/{name}",
        content,
        _EVENT_FIELDS if before or after or where else "",
        ", ".join(f"{quoted(one.name)} {one.sql_type}" for one in columns),
        bits,
        shift,
        SMALL,
        " AND ".join(where),
        to_java(list(before)),
        to_java(list(after)),
    )
    return DataFrame(frame, spark)


def value_by_number(values: Sequence[str | None], kind: str) -> str:
    """The value with the number of the directory among ``values``, as SQL: constant for a file, so it prunes files."""
    return f"get(CAST(array({', '.join(map(text_value, values))}) AS ARRAY<{kind}>), {DIRECTORY_NUMBER})"


def text_value(text: str | None) -> str:
    """A text as SQL, whatever is in it."""
    return "NULL" if text is None else f"CAST(X'{text.encode().hex()}' AS STRING)"


def file_statuses(files: Sequence[NumberedFile]) -> bytes:
    """The files as ``FileStatus`` objects, in the format in which Hadoop writes an array of them."""
    content = bytearray(len(files).to_bytes(4, "big"))
    for one in files:
        status = (
            _IS_FILE
            + bytes_field(2, one.path.encode())
            + number_field(3, one.size)
            + _READABLE
            + number_field(7, one.number)
        )
        content += len(status).to_bytes(4, "big") + status
    return bytes(content)
