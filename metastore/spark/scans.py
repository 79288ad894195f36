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

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, BooleanType, DataType, IntegerType, LongType, StructField, StructType

from metastore.acid.protobuf import bytes_field, number_field
from metastore.spark.compiled import compiled
from metastore.spark.deleted import DeletedRows

OPERATION, WRITE_ID, BUCKET, ROW_ID, BY = "__operation", "__write_id", "__bucket", "__row_id", "__by"
DELETED = "__deleted"
EVENT_FIELDS = (StructField(OPERATION, IntegerType()), StructField(WRITE_ID, LongType()),
                StructField(BUCKET, IntegerType()), StructField(ROW_ID, LongType()), StructField(BY, LongType()),
                StructField(DELETED, BooleanType()))
"""What a scan has before the table's columns: an event's fields as ORC orders them, and whether its row is deleted."""

NOWHERE = "file:/.acid_files_that_are_listed_already"
_IS_FILE, _READABLE = 2, 0o644


class NumberedFile(NamedTuple):
    """A file, its size, and the number of its directory."""

    path: str
    size: int
    number: int


def scan_files(spark: SparkSession, columns: StructType, files: Sequence[NumberedFile],
               deleted: DeletedRows | None = None) -> DataFrame:
    """The events in ACID files: ``EVENT_FIELDS``, then ``columns``; ``directory_number`` tells where each is from."""
    content, bits = file_statuses(files), None if deleted is None else deleted.in_bytes()
    shift = 0 if deleted is None else deleted.shift
    name = sha256(b"%d,%d,%b%b" % (shift, len(content), content, bits or b"")).hexdigest()
    schema = StructType([*EVENT_FIELDS, *columns.fields])
    frame = compiled(spark, "AcidOrcReader", "ListedFiles", "AcidOrcFormat").scan(
        spark._jsparkSession, f"{NOWHERE}/{name}", content, schema.json(), bits, shift)  # noqa: SLF001
    return DataFrame(frame, spark)


def directory_number() -> Column:
    """The number of the directory that a row's file belongs to; for the scan itself, before anything is done to it."""
    return F.unix_millis(F.col("_metadata.file_modification_time")).cast("int")


def value_by_number(number: Column, values: Sequence[str | None], kind: DataType) -> Column:
    """The value with that place among ``values``, as ``kind``: constant for each file, so that it prunes files."""
    texts = ", ".join("NULL" if value is None else f"CAST(X'{value.encode().hex()}' AS STRING)" for value in values)
    return F.get(F.expr(f"array({texts})").cast(ArrayType(kind)), number)


def file_statuses(files: Sequence[NumberedFile]) -> bytes:
    """The files as ``FileStatus`` objects, in the format in which Hadoop writes an array of them."""
    content = bytearray(len(files).to_bytes(4, "big"))
    for one in files:
        status = (number_field(1, _IS_FILE) + bytes_field(2, one.path.encode()) + number_field(3, one.size)
                  + bytes_field(4, number_field(1, _READABLE)) + number_field(7, one.number))
        content += len(status).to_bytes(4, "big") + status
    return bytes(content)
