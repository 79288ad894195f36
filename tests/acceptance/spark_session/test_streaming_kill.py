"""The driver of a streaming query is killed (SIGKILL) before and after the table's commit: every row is there once."""

import signal
import subprocess
import sys

import pytest

from metastore.spark import acid

pytestmark = pytest.mark.spark

_DRIVER = """
import os, signal, sys
from contextlib import contextmanager
from pyspark.sql import SparkSession
from metastore.spark import acid
from metastore.spark.txn.transactions import Transactions

uri, table, source, checkpoint, point = sys.argv[1:]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.memory", "512m")
         .config("spark.sql.shuffle.partitions", "1").config("spark.driver.bindAddress", "127.0.0.1")
         .config("hive.metastore.uris", uri).enableHiveSupport().getOrCreate())  # as a plain builder is given it
assert acid(spark).client.uri == uri
block = Transactions.block

@contextmanager
def killed(transactions):
    with block(transactions) as open_block:
        yield open_block
        if point == "before":
            die()
    die()

def die():
    print("here", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

Transactions.block = killed
rows = spark.readStream.schema("id INT").json(source)
acid(spark).stream_into(rows.writeStream.trigger(availableNow=True), table, checkpoint=checkpoint).awaitTermination()
"""


def _die(point, *arguments):
    """Run the driver until it kills itself at ``point``; its JVM goes too."""
    with subprocess.Popen([sys.executable, "-c", _DRIVER, *arguments, point], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, start_new_session=True) as driver:
        said = driver.stdout.read()  # until the JVM, which has it too, is gone
    assert driver.returncode == -signal.SIGKILL
    assert said.strip().endswith("here")


@pytest.mark.parametrize("dies_before", [False, pytest.param(True, marks=pytest.mark.robustness)], ids=["after", "before and after"])
def test_a_killed_driver_brings_every_row_once(acid_session, db, spark, lakehouse, tmp_path, dies_before):
    name = f"{db}.killed"
    acid_session.sql(f"CREATE TABLE {name} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "0.json").write_text('{"id": 1}\n{"id": 2}')
    arguments = (lakehouse.uri, name, str(tmp_path / "source"), str(tmp_path / "checkpoint"))

    if dies_before:
        _die("before", *arguments)
        assert acid_session.table(name).count() == 0
        assert acid_session.stream_positions(name) == []

    _die("after", *arguments)
    assert not (tmp_path / "checkpoint" / "commits" / "0").exists(), "Spark's own note of the batch is missing"
    [position] = acid_session.stream_positions(name)
    assert position.batch.batch_id == 0

    (tmp_path / "source" / "1.json").write_text('{"id": 3}')
    rows = spark.readStream.schema("id INT").json(str(tmp_path / "source"))
    with acid(spark) as session:
        session.stream_into(rows.writeStream.trigger(availableNow=True), name,
                            checkpoint=str(tmp_path / "checkpoint")).awaitTermination(300)
    assert sorted(row[0] for row in acid_session.table(name).collect()) == [1, 2, 3]
    assert acid_session.stream_positions(name)[0].batch.batch_id == 1
