"""Whether a row is deleted, as a column: for rows outside our scans, where ``DeletedBits.java`` does the look-up."""

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from metastore.acid_tables.deleted import BUCKET_BITS, CHUNK_BITS, HIGH_BITS, POSITIVE, DeletedRows, Numbers
from metastore.spark.jvm.compiled import jvm_of


def is_deleted(
    rows: DeletedRows, spark: SparkSession, write_id: str, bucket: str, row_id: str, directory: str
) -> Column:
    """Whether the row with these columns is deleted; false where any of them is NULL."""
    table = _Arrays(spark)
    version = F.expr(f"shiftleft({write_id}, {BUCKET_BITS}) | CAST({bucket} AS BIGINT)")
    part = F.expr(f"shiftleft(CAST({directory} AS BIGINT), {HIGH_BITS}) | shiftright({row_id}, {CHUNK_BITS})")
    mixed = version.bitwiseXOR(F.shiftleft(part, rows.shift)).bitwiseAND(F.lit(POSITIVE))
    place = (mixed % F.lit(len(rows.versions))).cast("int")
    word = F.get(table.of(rows.starts), place) + F.expr(f"shiftright({row_id} & {(1 << CHUNK_BITS) - 1}, 6)")
    bit_number = F.expr(f"CAST({row_id} & 63 AS INT)")
    bit = F.call_function("shiftrightunsigned", F.get(table.of(rows.words), word.cast("int")), bit_number)
    is_set = (
        (F.get(table.of(rows.versions), place) == version)
        & (F.get(table.of(rows.parts), place) == part)
        & (word < F.get(table.of(rows.ends), place))
        & (bit.bitwiseAND(F.lit(1)) == 1)
    )
    return F.coalesce(is_set, F.lit(False))  # noqa: FBT003 - a literal of SQL


class _Arrays:
    """Arrays as literals of a plan. Spark's own literals of Python lists would box every number."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = jvm_of(spark)
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001

    def of(self, numbers: Numbers) -> Column:
        """An array<bigint>."""
        values = self._gateway.new_array(self._jvm.long, len(numbers))
        self._jvm.java.nio.ByteBuffer.wrap(numbers.astype(">i8").tobytes()).asLongBuffer().get(values)
        types = self._jvm.org.apache.spark.sql.types
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        array = types.ArrayType(types.DataType.fromDDL("bigint"), False)  # noqa: FBT003 - without nulls
        literal = expressions.Literal(expressions.UnsafeArrayData.fromPrimitiveArray(values), array)
        return Column(self._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(literal))
