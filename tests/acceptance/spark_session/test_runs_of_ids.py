"""Files whose row ids follow one another: a row's place in its file tells its id, and ids are read only where it does not.

In each case the columns of ids are destroyed: the answer has to come all the same, or none at all.
"""

import random
from itertools import accumulate
from pathlib import Path

import pyorc
import pytest

pytestmark = pytest.mark.spark



def test_places_are_right_behind_row_groups_stripes_and_splits_that_are_left_out(acid_session, spark, db) -> None:
    """Conditions that take the first, the last or no row group of a stripe; rows are deleted all over the file."""
    name, hadoop = f"{db}.long", spark._jsc.hadoopConfiguration()
    settings = {"orc.stripe.size": "200000", "orc.row.index.stride": "1000"}
    acid_session.sql(f"CREATE TABLE {name} (n BIGINT, text STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for key, value in settings.items():
        hadoop.set(key, value)
    try:
        acid_session.insert(name, spark.range(0, 20_000, numPartitions=1).selectExpr("id AS n", "sha2(string(id), 512) AS text"))
    finally:
        for key in settings:
            hadoop.unset(key)
    location = Path(acid_session.client.get_table(*name.split(".")).sd.location.removeprefix("file:").replace("///", "/"))
    with (location / "delta_0000001_0000001_0000" / "bucket_00000").open("rb") as file:
        borders = [0, *accumulate(len(stripe) for stripe in pyorc.Reader(file).iter_stripes())]
    assert len(borders) > 4
    gone = {*random.Random(7).sample(range(20_000), 3000), *borders[:-1], 19_999}
    acid_session.delete(name, f"n IN ({', '.join(map(str, sorted(gone)))})")
    conditions = {
        "true": range(20_000),
        "n > 19500": range(19_501, 20_000),
        f"n >= {borders[2]} AND n < {borders[3]}": range(borders[2], borders[3]),
        f"n BETWEEN {borders[1] - 5} AND {borders[1] + 5}": range(borders[1] - 5, borders[1] + 6),
        f"n < 700 OR n IN ({borders[2] + 2500}, {borders[3] + 1500}) OR n BETWEEN 17000 AND 17010":
            {*range(700), borders[2] + 2500, borders[3] + 1500, *range(17_000, 17_011)},
    }

    for split in ("134217728", "30000"):
        spark.conf.set("spark.sql.files.maxPartitionBytes", split)
        try:
            for condition, numbers in conditions.items():
                rows = acid_session.sql(f"SELECT n FROM {name} WHERE {condition}").collect()
                assert (condition, sorted(row.n for row in rows)) == (condition, sorted({*numbers} - gone))
        finally:
            spark.conf.unset("spark.sql.files.maxPartitionBytes")
