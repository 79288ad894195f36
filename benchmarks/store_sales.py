"""The rows of TPC-DS store_sales for the benchmarks of ACID tables: generated once, kept as ORC in the cache."""

import shutil
import subprocess
from pathlib import Path

from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession

from benchmarks.hive import MissingError, cache, maven, once

ROWS_OF_SCALE_1 = 2_880_404
HERE = Path(__file__).parent / "tpcds"
_KEYS = [
    "sold_date_sk",
    "sold_time_sk",
    "item_sk",
    "customer_sk",
    "cdemo_sk",
    "hdemo_sk",
    "addr_sk",
    "store_sk",
    "promo_sk",
    "ticket_number",
    "quantity",
]
_AMOUNTS = [
    "wholesale_cost",
    "list_price",
    "sales_price",
    "ext_discount_amt",
    "ext_sales_price",
    "ext_wholesale_cost",
    "ext_list_price",
    "ext_tax",
    "coupon_amt",
    "net_paid",
    "net_paid_inc_tax",
    "net_profit",
]
COLUMNS = ", ".join(
    [
        *(f"ss_{name} {'BIGINT' if name == 'ticket_number' else 'INT'}" for name in _KEYS),
        *(f"ss_{name} DECIMAL(7,2)" for name in _AMOUNTS),
    ]
)
"""The columns in SQL's form."""


def store_sales(spark: SparkSession, rows: int) -> DataFrame:
    """Return at least ``rows`` rows, as whole files; the files of a scale are generated at its first use."""
    scale = -(-rows // ROWS_OF_SCALE_1)
    place = cache().with_name("tpcds") / f"store_sales-{scale}"
    once(place, lambda partly: _generate(spark, partly, scale))
    chosen: list[str] = []
    bought = 0
    for file in sorted(place.glob("part-*")):
        if bought < rows:
            chosen.append(str(file))
            bought += orc.ORCFile(str(file)).nrows
    return spark.read.schema(COLUMNS).orc(chosen)


def _generate(spark: SparkSession, place: Path, scale: int) -> None:
    jars = cache().with_name("tpcds") / "generator"
    once(jars, _fetch)
    text = place / "text"
    text.mkdir()
    done = subprocess.run(
        [
            "java",
            "-Xmx1g",
            "-cp",
            f"{jars}/*",
            "io.trino.tpcds.Driver",
            "--scale",
            str(scale),
            "--table",
            "store_sales",
            "--directory",
            str(text),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MissingError(f"The generator of TPC-DS failed: {done.stderr[-1000:]}")
    rows = spark.read.schema(COLUMNS).option("sep", "|").csv(str(text))
    rows.write.option("compression", "zlib").orc(str(place / "orc"))
    shutil.rmtree(text)
    for file in (place / "orc").glob("part-*"):
        file.rename(place / file.name)
    shutil.rmtree(place / "orc")


def _fetch(place: Path) -> None:
    shutil.copy(HERE / "pom.xml", place)
    maven(place, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={place}")
