"""README.md and acid-tables-in-spark-sql.md from their first line: a server as `make run` starts it, and a Spark of the reader's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.interop.spark_clients.conftest import environment, metastore
from tests.support.how_to import blocks

__all__ = ["metastore"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BIN = Path(sys.executable).parent
SMALL = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g",
         "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


@pytest.fixture
def reader(metastore, tmp_path):
    """Run a text as the reader does, but for the places of the server; what it prints."""
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in SMALL.items()))

    def run(*command, text):
        assert "thrift://localhost:9083" in text
        done = subprocess.run([*command, text.replace("thrift://localhost:9083", metastore.uri).replace(".data/warehouse", metastore.warehouse)], cwd=tmp_path, capture_output=True, text=True, check=False,
                              env={**environment(), "SPARK_CONF_DIR": str(tmp_path), "PATH": f"{Path(pyspark.__file__).parent / 'bin'}:{BIN}:{os.environ['PATH']}"})
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    return run


def test_the_first_statements_of_the_readme(reader):
    [program] = blocks("README.md", "python")
    assert sorted(re.findall(r"\| *(N\w+) *\| *(\d+) *\|", reader(sys.executable, "-c", text=program))) == [("N10156", "4"), ("N102UW", "182")]


def test_the_first_statements_of_acid_tables_in_spark_sql(reader):
    program, spark_sql = blocks("acid-tables-in-spark-sql.md", "python")[0], blocks("acid-tables-in-spark-sql.md", "bash")[0]
    assert sorted(re.findall(r"\| *(new|paid) *\| *(\d) *\|", reader(sys.executable, "-c", text=program))) == [("new", "1"), ("paid", "1")]
    assert reader("bash", "-euc", text=spark_sql).split()[-1] == "2"
