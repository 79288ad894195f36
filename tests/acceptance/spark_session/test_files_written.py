"""What the files of a table say of themselves, beside files that Spark's own ORC writer made of the same events."""

import re
from pathlib import Path

import pytest
from pyspark.sql import functions as F

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_B0 = 1 << 29
COLUMNS = {
    "a_boolean": ("BOOLEAN", "id % 3 = 0"), "a_tinyint": ("TINYINT", "id % 256 - 128"), "a_smallint": ("SMALLINT", "-id"),
    "an_int": ("INT", "id * 7919"), "a_bigint": ("BIGINT", "-id << 40"), "a_float": ("FLOAT", "id / 3"),
    "a_double": ("DOUBLE", "-id / 7"), "a_decimal": ("DECIMAL(9,3)", "id / 8"), "a_decimal_beyond_a_long": ("DECIMAL(19,0)", "-9999999999999999999 + id"), "a_long_decimal": ("DECIMAL(30,5)", "-id / 8"),
    "a_string": ("STRING", "repeat('ü', CAST(id % 50 AS INT))"), "a_binary": ("BINARY", "CAST('b' || id AS BINARY)"),
    "a_date": ("DATE", "date'1990-01-01' - CAST(id AS INT)"), "a_timestamp": ("TIMESTAMP", "timestamp_micros(-id * 1234567)"),
}
NESTED = {
    "an_array": ("ARRAY<DECIMAL(9,3)>", "transform(sequence(1, id % 5), one -> IF(one = 2, NULL, one / 8))"),
    "a_map": ("MAP<INT,STRING>", "map(CAST(id AS INT), IF(id % 3 = 0, NULL, 'v' || id))"),
    "a_struct": ("STRUCT<x:DATE,y:STRUCT<z:BOOLEAN>>", "struct(IF(id % 3 = 0, NULL, date'2000-01-01') AS x, struct(id % 2 = 0 AS z) AS y)"),
}


def _says(spark, path) -> dict[str, object]:
    """Return an ORC file's type, rows, and statistics of each column: counts, NULLs, the least, the greatest, the sum.

    Leave out the bytes it takes, and the lengths of lists, which ORC counts in batches.
    """
    orc, conf = spark._jvm.org.apache.orc.OrcFile, spark._jsc.hadoopConfiguration()
    reader = orc.createReader(spark._jvm.org.apache.hadoop.fs.Path(str(path)), orc.readerOptions(conf))
    try:
        return {
            "type": reader.getSchema().toString(), "rows": reader.getNumberOfRows(), "stride": reader.getRowIndexStride(),
            "compression": reader.getCompressionKind().toString(), "by": reader.hasMetadataValue("org.apache.spark.version"),
            "columns": [re.sub(r" (bytesOnDisk|\w+Children): \d+", "", one.toString()) for one in reader.getStatistics()]}
    finally:
        reader.close()


def _plain(spark, rows, folder, *, is_delete) -> Path:
    """Write a file of Spark's own with an event for each row, and return its path."""
    values = F.struct(*map(F.col, rows.columns))
    events = rows.select(
        F.lit(2 if is_delete else 0).alias("operation"), F.lit(1).cast("bigint").alias("originalTransaction"),
        F.lit(_B0).alias("bucket"), F.col("id").alias("rowId"),
        F.lit(2 if is_delete else 1).cast("bigint").alias("currentTransaction"),
        (F.when(F.col("id") < 0, values) if is_delete else values).alias("row"))
    events.write.option("compression", "zlib").orc(str(folder))
    [file] = folder.glob("part-*")
    return file


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS | NESTED], ids=["scalars", "nested too"])
def test_files_say_of_their_columns_what_those_of_spark_say(acid_session, spark, db, tmp_path, columns) -> None:
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT, {', '.join(f'{one} {kind}' for one, (kind, _) in columns.items())}) {_ACID}")
    rows = spark.range(0, 2500, numPartitions=1).selectExpr("id", *(
        f"CAST(IF((id + {place}) % 11 = 0, NULL, {sql}) AS {kind}) AS {one}" for place, (one, (kind, sql)) in enumerate(columns.items())))

    acid_session.insert(name, rows)
    acid_session.delete(name, "id >= 0")

    place = Path(acid_session.client.get_table(db, "t").sd.location.removeprefix("file:").replace("///", "/"))
    for directory, is_delete in (("delta_0000001_0000001_0000", False), ("delete_delta_0000002_0000002_0000", True)):
        ours = _says(spark, place / directory / "bucket_00000")
        sparks = _says(spark, _plain(spark, rows, tmp_path / directory, is_delete=is_delete))
        assert [pair for pair in zip(ours.pop("columns"), sparks.pop("columns"), strict=True) if pair[0] != pair[1]] == []
        assert ours == sparks
