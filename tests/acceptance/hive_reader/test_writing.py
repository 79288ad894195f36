"""What the writer of compactions publishes: every type, several stripes and splits, empty directories; Hive reads it (ACID-7 to ACID-14)."""

from pathlib import Path

import pyorc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from metastore.acid.bucket import encode
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidWriteIdList
from metastore.errors import InvalidOperationError
from metastore.spark.write.acid_writer import WRITER_COLUMN, RoutingError, WrittenFile
from tests.support.acid.reading import described, ids_and_rows
from tests.support.acid.tables import B0, AcidTable, write_acid
from tests.support.hive_oracle.oracle import HiveOracle

pytestmark = pytest.mark.spark

SNAPSHOT = ValidWriteIdList("db.t", 100)
TYPES = {
    "a_boolean": ("boolean", "true", True),
    "a_tinyint": ("tinyint", "cast(-3 as tinyint)", -3),
    "a_smallint": ("smallint", "cast(-300 as smallint)", -300),
    "an_int": ("int", "1 << 30", 1 << 30),
    "a_bigint": ("bigint", "1L << 60", 1 << 60),
    "a_float": ("float", "cast(1.5 as float)", 1.5),
    "a_double": ("double", "cast(-0.1 as double)", -0.1),
    "a_decimal": ("decimal(20,4)", "cast(-12345678901.2345 as decimal(20,4))", "-12345678901.2345"),
    "a_string": ("string", "'größe 你好'", "größe 你好"),
    "a_varchar": ("varchar(3)", "'abcdef'", "abc"),
    "a_char": ("char(5)", "'ab'", "ab   "),
    "a_binary": ("binary", "X'00FF10'", "AP8Q"),
    "a_date": ("date", "date'1969-12-31'", "1969-12-31"),
    "a_timestamp": ("timestamp", "timestamp'2013-03-10 02:30:00.123456'", "2013-03-10 02:30:00.123456"),
    "an_array": ("array<int>", "array(1, null, 3)", [1, None, 3]),
    "a_map": ("map<string,bigint>", "map('k', 7L)", [["k", 7]]),
    "a_struct": ("struct<x:int,y:array<string>>", "named_struct('x', 1, 'y', array('z'))", [1, ["z"]]),
    "a_null": ("string", "cast(null as string)", None),
}

LIMITS = {
    "boolean": ["true", "false"], "tinyint": ["-128", "127"], "smallint": ["-32768", "32767"],
    "int": ["-2147483648", "2147483647"], "bigint": ["-9223372036854775808", "9223372036854775807"],
    "float": ["'NaN'", "'-Infinity'", "-0.1"], "double": ["'NaN'", "'Infinity'", "4.9e-324"],
    "decimal(7,2)": ["-99999.99", "0", "1.50", "100"], "decimal(18,18)": ["-0.999999999999999999", "0.1"],
    "decimal(18,0)": ["999999999999999999"], "decimal(38,10)": ["-9999999999999999999999999999.9999999999", "1.5"],
    "string": ["''", "'größe'", "repeat('x', 3000)"], "binary": ["X''", "X'00FF'"],
    "date": ["'0001-01-01'", "'1582-10-04'", "'1582-10-15'", "'9999-12-31'"],
    "timestamp": ["'0001-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'2013-03-10 02:30:00'"],
    "array<decimal(7,2)>": ["array()", "array(1.50, null)", "array_repeat(-0.01, 300)"],
    "map<string,array<int>>": ["map()", "map('a', array(1), 'b', null)"],
    "struct<a:date,b:struct<c:string>>": ["struct(date'2020-02-29', struct(null))", "struct(null, null)"],
}
"""Values of each type for which the writer may have to do something special."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path / "t"


def _events(spark: SparkSession, rows: int, *, write_id: int = 1, tasks: int = 1) -> DataFrame:
    """Return the events of a fresh INSERT, one writer a task."""
    return spark.range(0, rows, 1, tasks).select(
        F.lit(0).alias("operation"), F.lit(write_id).cast("bigint").alias("originalTransaction"),
        F.expr(f"{B0} + shiftleft(spark_partition_id(), 16)").alias("bucket"),
        F.expr("monotonically_increasing_id() & 8589934591L").alias("rowId"),
        F.lit(write_id).cast("bigint").alias("currentTransaction"),
        F.struct(F.col("id").alias("n"), F.sha2(F.col("id").cast("string"), 512).alias("s")).alias("row"),
        F.spark_partition_id().alias(WRITER_COLUMN))


def test_every_type_arrives(spark: SparkSession, oracle: HiveOracle, directory: Path) -> None:
    row = F.struct(*(F.expr(sql).alias(name) for name, (_, sql, _) in TYPES.items()))
    events = _events(spark, 1).withColumn("row", row)

    write_acid(events, DeltaName(1, 1, 0), directory, is_routed=True)

    (found,) = oracle.rows(directory, SNAPSHOT, {name: kind for name, (kind, _, _) in TYPES.items()})
    assert found.row_id == (1, B0, 0)
    assert dict(zip(TYPES, found.values, strict=True)) == {name: value for name, (_, _, value) in TYPES.items()}


@pytest.mark.parametrize("types", [list(LIMITS), [kind for kind in LIMITS if "array<" not in kind]])
def test_the_files_say_what_those_of_sparks_own_writer_say(spark: SparkSession, directory: Path, types: list[str]) -> None:
    """Several batches of rows; NULL in each column, and events without a row."""
    columns = [F.expr(f"array({', '.join(f'cast({value} as {kind})' for value in LIMITS[kind])}, null)"
                      f"[cast(pmod(hash(row.n, {place}), {len(LIMITS[kind]) + 1}) as int)]").alias(f"c{place}")
               for place, kind in enumerate(types)]
    events = _events(spark, 2500, tasks=2).withColumn("row", F.when(F.expr("rowId % 7 < 6"), F.struct("row.n", *columns)))

    (written,) = write_acid(events, DeltaName(1, 1, 0), directory, is_routed=True)

    events.drop(WRITER_COLUMN).write.orc(f"{directory}/.plain")
    ours, plain = (spark.read.schema(events.drop(WRITER_COLUMN).schema).orc(path).selectExpr("to_json(struct(*))")
                   for path in (written.path, f"{directory}/.plain"))
    expected = sorted(row[0] for row in plain.collect())
    assert len(expected) == 2500
    assert sorted(row[0] for row in ours.collect()) == expected


def test_stripes_and_splits_lose_and_resurrect_nothing(
    spark: SparkSession, oracle: HiveOracle, directory: Path
) -> None:
    hadoop = spark._jsc.hadoopConfiguration()
    hadoop.set("orc.stripe.size", "262144")
    try:
        (written,) = write_acid(_events(spark, 60_000), DeltaName(1, 1, 0), directory, is_routed=True)
    finally:
        hadoop.unset("orc.stripe.size")
    with Path(written.files[0].path).open("rb") as file:
        reader = pyorc.Reader(file)
        stripes = [len(reader.read_stripe(one)) for one in range(reader.num_of_stripes)]
        index = reader.user_metadata["hive.acid.key.index"].decode()
    assert len(stripes) >= 4
    edges = [sum(stripes[:one + 1]) - 1 for one in range(len(stripes))]
    assert index == "".join(f"1,{B0},{edge};" for edge in edges)
    gone = {row for edge in edges for row in (edge - 1, edge, edge + 1)} & set(range(60_000)) | {0}
    AcidTable(spark, directory, {"n": "bigint", "s": "string"}).delete(DeltaName(2, 2, 0), [(2, (1, B0, row)) for row in gone])

    rows = oracle.rows(directory, SNAPSHOT, {"n": "bigint", "s": "string"}, split_size=100_000)

    assert {row.values[0] for row in rows} == set(range(60_000)) - gone
    assert len(rows) == 60_000 - len(gone)


def test_a_fresh_insert_is_written_without_a_shuffle(spark: SparkSession, oracle: HiveOracle, directory: Path) -> None:
    (written,) = write_acid(_events(spark, 1000, tasks=3), DeltaName(1, 1, 0), directory, is_routed=True, compression="snappy")

    assert [(file.bucket, file.rows) for file in written.files] == [(0, 333), (1, 333), (2, 334)]
    assert written.rows == 1000
    assert written.size == sum(Path(file.path).stat().st_size for file in written.files)
    assert sorted(path.name for path in Path(written.path).iterdir() if path.name[0] != ".") == [
        "_orc_acid_version", "bucket_00000", "bucket_00001", "bucket_00002"
    ]
    assert (Path(written.path) / "_orc_acid_version").read_bytes() == b"2"
    with Path(written.files[2].path).open("rb") as file:
        assert pyorc.Reader(file).compression == pyorc.CompressionKind.SNAPPY
    rows = oracle.rows(directory, SNAPSHOT, {"n": "bigint", "s": "string"})
    assert sorted(row.values[0] for row in rows) == list(range(1000))


def test_a_base_without_rows_hides_what_was_there(spark: SparkSession, oracle: HiveOracle, directory: Path) -> None:
    write_acid(_events(spark, 10), DeltaName(1, 1, 0), directory, is_routed=True)

    (written,) = write_acid(_events(spark, 0, write_id=2), BaseName(2), directory, empty=True)

    assert written.files == (WrittenFile(f"{written.path}/bucket_00000", 0, written.size, 0),)
    with Path(written.files[0].path).open("rb") as file:
        assert pyorc.Reader(file).compression == pyorc.CompressionKind.ZLIB, "Hive before 4 knows no zstd"
    assert oracle.rows(directory, SNAPSHOT, {"n": "bigint", "s": "string"}) == []
    assert write_acid(_events(spark, 0), DeltaName(3, 3, 0), directory) == []


def test_nothing_is_published_over_something(spark: SparkSession, directory: Path) -> None:
    (directory / "delta_0000001_0000001_0000").mkdir()
    with pytest.raises(FileExistsError, match="nothing was published"):
        write_acid(_events(spark, 10), DeltaName(1, 1, 0), directory, is_routed=True)
    assert [path.name for path in directory.iterdir()] == ["delta_0000001_0000001_0000"]

    (directory / ".stage").mkdir()
    with pytest.raises(FileExistsError, match="another attempt"):
        write_acid(_events(spark, 10), DeltaName(2, 2, 0), directory, is_routed=True)
    assert (directory / ".stage").exists(), "it belongs to somebody else"


def test_wrong_routing_is_refused(spark: SparkSession, directory: Path) -> None:
    def write(events: DataFrame) -> None:
        write_acid(events, DeltaName(1, 1, 0), directory, is_routed=True)

    with pytest.raises(RoutingError, match="Two tasks wrote bucket_00000"):
        write(_events(spark, 10, tasks=2).withColumn("bucket", F.lit(encode(0))))
    with pytest.raises(RoutingError, match="writers 0 to 1"):
        write(_events(spark, 10, tasks=2).coalesce(1).withColumn("bucket", F.expr(f"{B0} + shiftleft(cast(row.n % 2 as int), 16)")))
    with pytest.raises(InvalidOperationError, match="timestamp_ntz"):
        write(_events(spark, 10).withColumn("row", F.expr("struct(timestamp_ntz'2020-01-01 00:00:00' as t)")))
    assert list(directory.iterdir()) == []


def test_what_hive_writes_is_what_we_choose_and_read(spark: SparkSession, oracle: HiveOracle, directory: Path) -> None:
    table = AcidTable(spark, directory)
    oracle.write(directory, table.columns, write_id=1, inserts=[["a"], ["b"], ["c"]])
    oracle.write(directory, table.columns, write_id=2, deletes=[(1, 0, 1)])

    state = table.state(SNAPSHOT)

    assert [str(delta.name) for delta in state.deltas] == ["delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000"]
    paths = [f"{directory}/{file.path}" for delta in state.insert_deltas for file in delta.bucket_files]
    events = spark.read.schema(table.schema).orc(paths).collect()
    assert [(one.originalTransaction, one.bucket, one.rowId, one.row.v) for one in events] == [
        (1, 0, 0, "a"), (1, 0, 1, "b"), (1, 0, 2, "c")
    ]
    assert ids_and_rows(spark, described(directory, table.columns), SNAPSHOT) == [((1, 0, 0), ("a",)), ((1, 0, 2), ("c",))]
    assert sorted(row.values[0] for row in oracle.rows(directory, SNAPSHOT, table.columns)) == ["a", "c"]


def test_deletes_of_rows_that_hive_2_wrote_go_where_it_looks_for_them(spark: SparkSession, oracle: HiveOracle, directory: Path) -> None:
    """Their bucket number is the writer's id alone; Hive reads the delete events of one bucket beside its rows."""
    table = AcidTable(spark, directory)
    for bucket in (1, 3):
        oracle.write(directory, table.columns, write_id=1, bucket=bucket, inserts=[["a"], ["b"], ["c"]])

    [written] = table.delete(DeltaName(2, 2, 0), [(2, (1, 3, 1)), (2, (1, 1, 0))])

    left = [((1, 1, 1), "b"), ((1, 1, 2), "c"), ((1, 3, 0), "a"), ((1, 3, 2), "c")]
    assert [(file.bucket, file.rows) for file in written.files] == [(1, 1), (3, 1)]
    assert sorted((row.row_id, row.values[0]) for row in oracle.rows(directory, SNAPSHOT, table.columns)) == left
    assert ids_and_rows(spark, described(directory, table.columns), SNAPSHOT) == [(row_id, (value,)) for row_id, value in left]
