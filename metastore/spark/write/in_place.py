"""Writes on S3, where a rename is a copy: files are uploaded directly to their final names.

Rule: a task uploads a file and does not complete the upload, so no reader sees the file. The driver learns the uploads
of the attempts that Spark keeps, one of each task, and completes only those when the statement is published. After a
failure it aborts them, then removes completed files: an aborted upload can no longer be completed, not even by a late
request. If an upload is never ended (the driver was killed, an executor lost), it never becomes a file; the bucket's
lifecycle rule removes it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pyspark.sql import SparkSession

from metastore.acid.names import BUCKET_FILE
from metastore.errors import MetaError
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.messages import from_java, to_java


class ElsewhereError(MetaError):
    """A file was uploaded to another name than its final name, and has to be written again, in staging."""


class Upload(NamedTuple):
    """A task's file that has no name yet. ``file``: the task's name for it."""

    file: str
    target: str
    size: int
    handle: str
    parts: Sequence[str]


@dataclass(frozen=True)
class InPlaceWrite:
    """A write: the settings of its tasks, and their uploads."""

    spark: SparkSession
    write: Any
    """The JVM's object, an ``InPlaceUploads.Write``."""

    @classmethod
    def into(cls, spark: SparkSession, location: str, name: object) -> Self | None:
        """Return a write into the directory ``name``; None where a rename costs nothing, or uploads are impossible."""
        if not is_written_in_place(spark, location):
            return None
        uploads, java_spark = java_object(spark, "InPlaceUploads"), spark._jsc  # noqa: SLF001 - PySpark offers no other way
        return cls(spark, uploads.write(java_spark.sc(), f"{location}/{name}", BUCKET_FILE))

    def uploads(self) -> list[Upload]:
        """Return the uploads of finished tasks."""
        return [Upload(**upload) for upload in from_java(self.write.uploads())]

    @contextmanager
    def aborted_on_failure(self) -> Iterator[None]:
        """Leave no upload behind when the block fails before anything is completed."""
        try:
            yield
        except BaseException:
            with suppress(Exception):
                abort(self.spark, self.uploads())
            raise


def is_written_in_place(spark: SparkSession, location: str) -> bool:
    """Return True if a rename there is a copy, and files can be uploaded to their final names instead."""
    return bool(java_object(spark, "InPlaceUploads").isFor(location, spark._jsc.hadoopConfiguration()))  # noqa: SLF001 - as above


def complete(spark: SparkSession, uploads: Sequence[Upload]) -> None:
    """Complete the uploads: files get their names."""
    _end(spark, uploads, is_complete=True)


def abort(spark: SparkSession, uploads: Sequence[Upload]) -> None:
    """Make sure that no upload is completed after this; completed uploads are files, and stay."""
    _end(spark, uploads, is_complete=False)


def _end(spark: SparkSession, uploads: Sequence[Upload], *, is_complete: bool) -> None:
    if uploads:
        settings = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        listed = to_java([upload._asdict() for upload in uploads])
        java_object(spark, "InPlaceUploads").end(listed, is_complete, settings)
