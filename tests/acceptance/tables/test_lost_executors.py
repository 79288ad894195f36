"""Executors killed, tasks retried, tasks run twice: each row is there once, and no file more than the tasks committed.

Only in ``make robustness-tables``: a local cluster takes memory and time.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table
from tests.acceptance.tables.surviving import ROWS, UPDATED, WAYS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800),
              pytest.mark.skipif(not os.environ.get("TABLE_SEEDS"), reason="make robustness-tables")]


@pytest.mark.parametrize("way", [*WAYS, UPDATED])
def test_no_row_and_no_file_is_there_twice(way, acid_session, db, lakehouse):
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")

    done = subprocess.run([sys.executable, "-m", "tests.acceptance.tables.surviving", lakehouse.uri, name, way],
                          check=False, capture_output=True, text=True, timeout=900)

    assert done.returncode == 0, done.stderr[-4000:]
    buckets = {"delta_0000001_0000001_0000": 4}
    if way == UPDATED:   # Spark joins the small parts of a shuffle, so one task wrote all events
        buckets |= {"delete_delta_0000002_0000002_0000": 4, "delta_0000002_0000002_0000": 1}
    rows = acid_session.table(name, row_id=True).collect()
    assert sorted((row.id, row.name) for row in rows) == [(one, "y" if way == UPDATED else "x") for one in range(ROWS)]
    assert len({row.ROW__ID for row in rows}) == ROWS
    place = Path(acid_session.client.get_table(db, "t").sd.location.removeprefix("file:").replace("///", "/"))
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file() and path.suffix != ".crc") == sorted(
        f"{directory}/{file}" for directory, count in buckets.items() for file in ("_orc_acid_version", *(f"bucket_0000{one}" for one in range(count))))
    assert check_table(acid_session.client, Files(), table_name(db, "t")) == []
