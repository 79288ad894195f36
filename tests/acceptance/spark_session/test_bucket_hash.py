"""The bucket of a row as Spark's JVM computes it, beside the hash that was checked against Hive's own vectors."""

import random
from datetime import date, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from metastore.acid.bucket import writer_id_sql
from metastore.acid.hashes import bucket_of
from metastore.acid.types import parse_type
from metastore.spark.write.bucket_hash import bucket
from tests.support.acid.shared_vectors import HASHES, VECTORS

pytestmark = pytest.mark.spark

_TEXTS = ["", "a", "ab", "abc", "abcd", "Ünïcode", "日本語", "\x7f\x80", "trailing  ", "é" * 7]
_VALUES = {
    "boolean": [True, False], "tinyint": [-128, -1, 0, 127], "smallint": [-2**15, -1, 2**15 - 1],
    "int": [-2**31, -1, 0, 1, 2**31 - 1], "bigint": [-2**63, -2**31, -1, 0, 1, 2**32, 2**63 - 1],
    "date": [date(1970, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(9999, 12, 31)],
    "string": _TEXTS, "varchar(20)": _TEXTS, "char(20)": _TEXTS, "binary": [text.encode() for text in _TEXTS] + [b"\xff\x80"],
    "double": [0.0, -1.5, 1e300], "decimal(10,2)": [Decimal("1.00"), Decimal("-123.45")],
}


def _more(kind: str, seed: random.Random) -> list:
    """Values besides the special ones."""
    bits = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
    if kind in bits:
        return [seed.getrandbits(bits[kind]) - 2 ** (bits[kind] - 1) for _ in range(200)]
    if kind == "date":
        return [date(1, 1, 1) + timedelta(days=seed.randrange(3_650_000)) for _ in range(200)]
    if kind in ("string", "varchar(20)", "char(20)"):
        return ["".join(chr(seed.choice((97, 233, 0x20AC, 0x1F600, 32))) for _ in range(seed.randrange(12))) for _ in range(200)]
    return [seed.randbytes(seed.randrange(12)) for _ in range(200)] if kind == "binary" else []


@pytest.mark.parametrize("version", [1, 2])
def test_every_type_and_combination(spark, version: int) -> None:
    seed = random.Random(version)
    kinds = list(_VALUES)
    values = {kind: [None, *_VALUES[kind], *_more(kind, seed)] for kind in kinds}
    rows = [tuple(seed.choice(values[kind]) for kind in kinds) for _ in range(1000)]
    stored = {"varchar(20)": "string", "char(20)": "string"}
    schema = ", ".join(f"c{place} {stored.get(kind, kind)}" for place, kind in enumerate(kinds))
    frame = spark.createDataFrame(rows, schema)
    sets = [[place] for place in range(len(kinds))] + [[4, 6], [3, 5, 0], [6, 4, 6], [10, 4]]

    def chosen(places: list[int]):
        types = [parse_type(kinds[place]) for place in places]
        return bucket(spark, [F.col(f"c{place}") for place in places], types, 97, version), types

    found = frame.select(*(chosen(places)[0].alias(f"b{number}") for number, places in enumerate(sets))).collect()

    for number, places in enumerate(sets):
        types = chosen(places)[1]
        wanted = [bucket_of([row[place] for place in places], types, 97, version) for row in rows]
        assert [row[number] for row in found] == wanted, [kinds[place] for place in places]


def test_the_vectors(spark) -> None:
    """Compare the vectors that Python and Java answer too."""
    most = 2**31 - 1
    vectors = [one for one in HASHES if one[0] != "timestamp"]
    rows = spark.createDataFrame([tuple(value for _, value, *_ in vectors)], ", ".join(
        f"c{at} {'string' if 'char' in kind else kind}" for at, (kind, *_) in enumerate(vectors)))

    for version in (1, 2):
        found = rows.select(*(bucket(spark, [F.col(f"c{at}")], [parse_type(kind)], most, version) for at, (kind, *_) in enumerate(vectors)))
        assert list(found.head()) == [(one[1 + version] & most) % most for one in vectors]

    numbers = spark.createDataFrame([(number,) for number, *_ in VECTORS["bucket_numbers"]], "n int")
    assert [row[0] for row in numbers.select(F.expr(writer_id_sql("n"))).collect()] == [writer for _, _, writer, _ in VECTORS["bucket_numbers"]]
