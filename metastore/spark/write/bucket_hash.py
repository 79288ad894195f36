"""Hive's bucket of a row as a Spark expression, in the JVM where Spark or Hive's storage library has the hash.

Rule: the result is that of ``acid.hashes.bucket_of``, which computes buckets of other, seldom bucketed types row by row
in Python. Version 1 is an expression of Spark's own; version 2 is Hive's Murmur3 class, whose jar Spark ships for ORC,
or Spark's Murmur3 with Hive's seed, which agrees for whole 4-byte words.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import IntegerType

from metastore.acid.hashes import SEED, bucket_of
from metastore.acid.types import HiveType
from metastore.spark.jvm.compiled import jvm_of

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_IN_JVM = {
    1: (*_WHOLE_NUMBERS, "boolean", "date", "string"),
    2: ("boolean", "tinyint", "int", "bigint", "date", "string", "varchar", "char", "binary"),
}
_LOW_32 = 0xFFFFFFFF
_LOW_31 = 0x7FFFFFFF


def bucket(
    spark: SparkSession, columns: Sequence[Column], types: Sequence[HiveType], count: int, version: int
) -> Column:
    """Return the bucket of a row, 0 to ``count`` - 1.

    ``columns``: its bucketing columns in the order of CLUSTERED BY.
    """
    if any(kind.kind not in _IN_JVM[version] for kind in types):
        return F.udf(lambda *values: bucket_of(values, types, count, version), IntegerType())(*columns)
    jvm = _Jvm(spark)
    hashed = [
        F.coalesce(_hash(jvm, column, kind, version).cast("bigint"), F.lit(0)).bitwiseAND(F.lit(_LOW_32))
        for column, kind in zip(columns, types, strict=True)
    ]
    whole = reduce(
        lambda hash_so_far, hash_of_column: (hash_so_far * 31 + hash_of_column).bitwiseAND(F.lit(_LOW_32)), hashed
    )
    return F.pmod(whole.bitwiseAND(F.lit(_LOW_31)), F.lit(count)).cast("int")


def _hash(jvm: "_Jvm", column: Column, kind: HiveType, version: int) -> Column:
    if kind.kind in ("boolean", "tinyint"):
        return column.cast("int")
    if version == 1:
        return jvm.hive_hash(column)
    if kind.kind in ("int", "date"):
        return jvm.murmur3(jvm.reversed_bytes(F.unix_date(column) if kind.kind == "date" else column, "Integer"))
    if kind.kind == "bigint":
        return jvm.murmur3(jvm.reversed_bytes(column, "Long"))
    return jvm.hive_murmur3((F.rtrim(column) if kind.kind == "char" else column).cast("binary"))


class _Jvm:
    """Expressions that Spark has, but for which PySpark has no function."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = jvm_of(spark)
        self._expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        self._bridge = self._jvm.org.apache.spark.sql.classic.ExpressionUtils

    def hive_hash(self, column: Column) -> Column:
        """Return version 1's hash of a value; NULL's is 0."""
        return self._column(self._expressions.HiveHash(self._seq(column)))

    def murmur3(self, column: Column) -> Column:
        """Return the Murmur3 hash of a number's bytes, the lowest first; NULL stays NULL."""
        hashed = self._column(self._expressions.Murmur3Hash(self._seq(column), SEED))
        return F.when(column.isNotNull(), hashed)

    def hive_murmur3(self, data: Column) -> Column:
        """Return Hive's Murmur3 hash of bytes."""
        return self._call("org.apache.hive.common.util.Murmur3", "hash32", "int", data, F.length(data), F.lit(SEED))

    def reversed_bytes(self, column: Column, java_type: str) -> Column:
        """Return an Integer or a Long with its bytes in the opposite order."""
        return self._call(
            f"java.lang.{java_type}", "reverseBytes", {"Integer": "int", "Long": "bigint"}[java_type], column
        )

    def _call(self, java_class: str, method: str, returns: str, *arguments: Column) -> Column:
        types = self._jvm.org.apache.spark.sql.types.DataType
        no_types = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(self._jvm.java.util.ArrayList())
        flags = True, True, True  # propagates NULL, returns NULL, is deterministic
        return self._column(
            self._expressions.objects.StaticInvoke(
                self._jvm.java.lang.Class.forName(java_class),
                types.fromDDL(returns),
                method,
                self._seq(*arguments),
                no_types,
                *flags,
                self._jvm.scala.Option.empty(),
            )
        )

    def _seq(self, *columns: Column) -> Any:
        expressions = self._jvm.java.util.ArrayList()
        for column in columns:
            expressions.add(self._bridge.expression(column._jc))  # noqa: SLF001
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(expressions)

    def _column(self, expression: Any) -> Column:
        return Column(self._bridge.column(expression))
