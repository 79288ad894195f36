"""One Spark scan over files that are known already, each with the number of the ACID directory that it belongs to.

Rules kept here. What was listed once is not listed again: Spark gets the files of a scan with their sizes, however many
directories they lie in. The number of its directory goes with a file as the time of its modification, which ORC never
looks at: to Spark that is a constant of the file, so a condition on the number, or on a value that is looked up by it
(a partition key), leaves out whole files before anything is opened. A scan has the table's own columns, with those of
the event before them, and reads what a query asks for: where it asks for no ids, none (see ``AcidOrcFormat.java``). To
Spark two scans are the same when they are of the same files, without the same deleted rows.
"""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

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

_ROOT = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/]*)?")
_NOWHERE = "file:/.acid_files_that_are_listed_already"
_UNBOUNDED, _FOREVER = 1 << 40, -1
_IS_FILE, _READABLE = 2, 0o644


class NumberedFile(NamedTuple):
    """A file, its size, and the number of its directory."""

    path: str
    size: int
    number: int


def scan_files(spark: SparkSession, columns: StructType, files: Sequence[NumberedFile],
               deleted: DeletedRows | None = None) -> DataFrame:
    """The events in ACID files: ``EVENT_FIELDS``, then ``columns``; ``directory_number`` tells where each is from."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to say which files there are
    session: Any = spark._jsparkSession  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.datasources
    nothing = jvm.scala.Option.empty()
    options = getattr(getattr(jvm, "scala.collection.immutable.Map$"), "MODULE$").empty()
    content = _written(spark, files)
    parent = jvm.org.apache.hadoop.fs.Path(f"{_NOWHERE}/{_digest(content, deleted)}")
    listed = sources.SharedInMemoryCache(_UNBOUNDED, _FOREVER).createForNewClient()
    listed.putLeafFiles(parent, _statuses(spark, content, len(files)))
    index = sources.InMemoryFileIndex(
        session, jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.Collections.singletonList(parent)),
        options.updated("recursiveFileLookup", "true"), nothing, listed, nothing, nothing)
    if index.allFiles().size() != len(files):
        raise RuntimeError("Spark does not take the files that it is given")
    schema = StructType([*EVENT_FIELDS, *columns.fields])
    relation = sources.HadoopFsRelation(
        index, session.parseDataType(StructType([]).json()), session.parseDataType(schema.json()), nothing,
        _file_format(spark, deleted), options, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _file_format(spark: SparkSession, deleted: DeletedRows | None) -> Any:
    """An ``AcidOrcFormat``."""
    jvm: Any = spark._jvm  # noqa: SLF001 - as above
    new_array = spark.sparkContext._gateway.new_array  # noqa: SLF001
    no_types, nothing = new_array(jvm.java.lang.Class, 0), new_array(jvm.java.lang.Object, 0)
    made = compiled(spark, "AcidOrcReader", "AcidOrcFormat").getConstructor(no_types).newInstance(nothing)
    if deleted is not None:
        made.leaveOut(*deleted.in_java(spark), deleted.shift)
    return made


def _digest(content: bytes, deleted: DeletedRows | None) -> str:
    """Spark takes scans with the same root path for the same scan."""
    digest = sha256(content)
    if deleted is not None:
        digest.update(deleted.shift.to_bytes(1))
        for numbers in deleted.arrays:
            digest.update(len(numbers).to_bytes(8) + numbers.tobytes())
    return digest.hexdigest()


def directory_number() -> Column:
    """The number of the directory that a row's file belongs to; for the scan itself, before anything is done to it."""
    return F.unix_millis(F.col("_metadata.file_modification_time")).cast("int")


def value_by_number(number: Column, values: Sequence[str | None], kind: DataType) -> Column:
    """The value with that place among ``values``, as ``kind``: constant for each file, so that it prunes files."""
    texts = ", ".join("NULL" if value is None else f"CAST(X'{value.encode().hex()}' AS STRING)" for value in values)
    return F.get(F.expr(f"array({texts})").cast(ArrayType(kind)), number)


def _qualified(spark: SparkSession, paths: Sequence[str]) -> list[str]:
    """The paths with their file system."""
    @cache
    def qualified(root: str) -> str:
        path = jvm.org.apache.hadoop.fs.Path(f"{root}/")
        file_system = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
        return str(file_system.makeQualified(path).toString()).rstrip("/")

    jvm: Any = spark._jvm  # noqa: SLF001
    roots = [_ROOT.findall(path)[0] for path in paths]
    return [qualified(root) + path[len(root):] for root, path in zip(roots, paths, strict=True)]


def _written(spark: SparkSession, files: Sequence[NumberedFile]) -> bytes:
    """The files as ``FileStatus`` objects, in the format in which Hadoop writes an array of them."""
    content = bytearray(len(files).to_bytes(4, "big"))
    for path, one in zip(_qualified(spark, [one.path for one in files]), files, strict=True):
        status = (number_field(1, _IS_FILE) + bytes_field(2, path.encode()) + number_field(3, one.size)
                  + bytes_field(4, number_field(1, _READABLE)) + number_field(7, one.number))
        content += len(status).to_bytes(4, "big") + status
    return bytes(content)


def _statuses(spark: SparkSession, content: bytes, count: int) -> Any:
    """Hadoop's own ``FileStatus[]``: one call into the JVM, not several for each file."""
    jvm: Any = spark._jvm  # noqa: SLF001
    found = jvm.org.apache.hadoop.io.ArrayWritable(jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus"))
    found.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(content)))
    statuses = spark.sparkContext._gateway.new_array(jvm.org.apache.hadoop.fs.FileStatus, count)  # noqa: SLF001
    jvm.java.lang.System.arraycopy(found.get(), 0, statuses, 0, count)
    return statuses
