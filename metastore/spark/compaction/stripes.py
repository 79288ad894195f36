"""Files of insert events that are joined by copying their stripes: no row is read.

Rule: only stripes whose footers prove that they fit are copied (``compaction.merging.rules.in_one_file``). The driver
copies them into staging.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from metastore.acid.names import VERSION_FILE, VERSION_TEXT, BaseName, DeltaName, bucket_file
from metastore.acid.orc_footer import RowKey
from metastore.compaction.merging.rules import Stripe, StripedFile, in_one_file
from metastore.compaction.working.rules import InputFile, Tally
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.jvm.messages import from_java, to_java
from metastore.spark.write.acid_writer import Staged, StagedWrite, WrittenFile
from metastore.spark.write.event_format import FileReport
from metastore.spark.write.in_place import is_written_in_place

Buckets = Mapping[int, Sequence[StripedFile]]


def copyable(spark: SparkSession, location: str, files: Sequence[InputFile]) -> Buckets:
    """Return the files of each bucket, to be copied in this order; none if the rows of one bucket have to be read.

    On S3 there are none either, since staging costs another copy there.
    """
    if is_written_in_place(spark, location):
        return {}
    striped = {file.path: file for file in striped_files(spark, files)}
    buckets = {
        bucket: in_one_file(bucket, [striped[file.path] for file in files if file.rows and file.bucket == bucket])
        for bucket in {file.bucket for file in files if file.rows}
    }
    return buckets if all(buckets.values()) else {}


def striped_files(spark: SparkSession, files: Sequence[InputFile]) -> list[StripedFile]:
    """Return the files with rows by their footers, which the driver reads."""
    paths = [file.path for file in files if file.rows]
    footers = from_java(_java(spark).footers(to_java(paths), _settings(spark)))
    return [
        StripedFile(path, footer["rows"], footer["form"], tuple(map(_stripe, footer["stripes"])))
        for path, footer in zip(paths, footers, strict=True)
    ]


@contextmanager
def copied_stripes(
    spark: SparkSession, buckets: Buckets, name: BaseName | DeltaName, location: str, staging: str
) -> Iterator[StagedWrite]:
    """Yield a complete directory, as ``staged_acid`` does, for the block to publish."""
    hadoop, staged = Hadoop(spark), Staged(location, name, f"{staging}/out")
    hadoop.mkdirs(staged.out)
    try:
        for bucket, files in sorted(buckets.items()):
            path = f"{staged.out}/{bucket_file(bucket)}"
            _java(spark).copy(to_java([file.path for file in files]), path, _settings(spark))
            staged.files.append(_written(hadoop, path, bucket, files))
        hadoop.write(f"{staged.out}/{VERSION_FILE}", VERSION_TEXT)
        yield StagedWrite([staged], [Tally(file.bucket, file.bucket, inserts=file.rows) for file in staged.files], [])
    finally:
        hadoop.delete(staging)


def _written(hadoop: Hadoop, path: str, bucket: int, files: Sequence[StripedFile]) -> WrittenFile:
    """Describe the output by the footers of its inputs; the proof reads the output's own footer."""
    rows, last, name = sum(file.rows for file in files), files[-1].stripes[-1].last, bucket_file(bucket)
    report = FileReport(
        rows=rows,
        lowest_writer=bucket,
        highest_writer=bucket,
        repeated=last,
        times=1,
        unsorted=0,
        last=last,
        first_row_id=files[0].stripes[0].lowest.row_id,
        jumps=0,
        file=name,
    )
    return WrittenFile(name, rows, hadoop.size(path), bucket, report=report)


def _stripe(described: dict[str, Any]) -> Stripe:
    keys = {name: RowKey(*described[name]) for name in ("lowest", "highest", "last")}
    return Stripe(described["rows"], described["bytes"], **keys)


def _java(spark: SparkSession) -> Any:
    return java_object(spark, "CopiedStripes")


def _settings(spark: SparkSession) -> Any:
    return spark._jsc.hadoopConfiguration()  # noqa: SLF001
