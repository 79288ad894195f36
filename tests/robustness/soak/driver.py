"""A Spark driver of the soak, by plain spark.sql."""

import time
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from metastore.spark import configure
from tests.robustness.soak.role import PATIENCE_S, Role, pause
from tests.robustness.soak.stage import JAVA_OPTIONS
from tests.robustness.soak.tables import TXN_TIMEOUT_S

FAILURES = (PySparkException, Py4JJavaError)
"""How a statement fails: refused, or by its tasks."""
_LOST_FILE = ("FileNotFound", "FILE_NOT_EXIST", "does not exist", "No such file", "Malformed ORC", "not a valid ORC")


class Driver(Role):
    """A role with a Spark session."""

    def __init__(self, role: str, uris: str, seed: str, directory: str) -> None:
        super().__init__(role, uris, seed, directory)
        self.spark = session(uris, self.directory, role)

    def rows(self, sql: str) -> list[Any]:
        """Return the rows of a query, tried again while servers are down. A file that is missing under a reader is an anomaly."""
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            started = self.clock.silent_s
            try:
                return self.spark.sql(sql).collect()
            except FAILURES as error:
                self.judge_read(error, started)
                if time.monotonic() > ends_at:
                    raise
                pause(1)

    def failed(self, what: str, error: Exception) -> bool:
        """Whether the service has said that the statement changed nothing, since somebody else was first."""
        is_refused = isinstance(error, PySparkException) and error.getSqlState() == "40001"
        self.count(f"{what} refused" if is_refused else f"{what} that failed")
        if isinstance(error, ParseException):
            self.anomaly(f"{what} of the soak itself are wrong: {error}")
        if not is_refused:
            print(f"{what}: {str(error)[:300]}", flush=True)
        return is_refused

    def judge_read(self, error: Exception, silent_before: float) -> None:
        """Whether a read may fail like this: its snapshot is held only as long as its process shows that it lives."""
        self.count("reads that failed")
        if any(word in str(error) for word in _LOST_FILE) and self.clock.silent_s - silent_before < TXN_TIMEOUT_S / 4:
            self.anomaly(f"a file was missing under a reader: {str(error)[:600]}")


def session(uris: str, directory: Path, role: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName(f"soak {role}")
    for key, value in {
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2", "spark.driver.memory": "700m",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS, "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1", "spark.sql.warehouse.dir": (directory / "warehouse").as_uri()}.items():
        builder = builder.config(key, value)
    made = configure(builder, uris).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made
