"""Files of tables that Hive's own classes read and write (``serde_storage``), through a data source of ours.

Rule: a scan shows the same rows as those classes, of all files or of none. If a row would not read back the same,
nothing of its statement is written (``SerdeWriter.java``).
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from metastore.acid_tables.serde_storage import HiveStorage
from metastore.errors import InvalidOperationError
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.read.scans import NOWHERE, NumberedFile, file_statuses

RAW = StructType([StructField("__record", StringType())])
"""The only column of a raw storage: the record."""


def scan_serde(
    spark: SparkSession, storage: HiveStorage, columns: StructType, files: Sequence[NumberedFile]
) -> DataFrame:
    """Return the rows of files; ``DIRECTORY_NUMBER`` is the number of a row's file.

    Raises: InvalidOperationError when the classes are missing, or have other columns.
    """
    require_usable(spark, storage)
    content, properties = file_statuses(files), storage.text()
    name = sha256(b"%d,%b%b" % (len(content), content, properties.encode())).hexdigest()
    frame = _format(spark).scan(spark._jsparkSession, f"{NOWHERE}/{name}", content, columns.json(), properties)  # noqa: SLF001
    return DataFrame(frame, spark)


def save_serde(writer: DataFrameWriter, path: str, storage: HiveStorage, spark: SparkSession) -> None:
    """Write below ``path``. Raises: InvalidOperationError for a row that the format cannot hold."""
    jvm_writer = writer._jwrite  # noqa: SLF001 - PySpark cannot name a data source of ours
    if reason := _format(spark).save(jvm_writer, path, storage.text()):
        raise InvalidOperationError(f"A row cannot be stored: {reason}. Nothing was written.")


def written_rows(hadoop: Hadoop, path: str) -> int:
    """Return the number of rows of a file that ``save_serde`` wrote."""
    directory, _, name = path.rpartition("/")
    return int(hadoop.read(f"{directory}/rows-{name}"))


def require_usable(spark: SparkSession, storage: HiveStorage) -> None:
    """Raise InvalidOperationError when this Spark lacks the classes, or they have other columns."""
    if reason := _format(spark).refusal(spark._jsparkSession, storage.text()):  # noqa: SLF001 - as above
        raise InvalidOperationError(f"This table cannot be read or written here: {reason}.")


def _format(spark: SparkSession) -> Any:
    return java_object(spark, "SerdeFormat")
