"""A metastore as its user starts it, and Spark's own servers on it, with the settings and the jar that the how-to names."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

from metastore.spark.catalog import CATALOG, EXTENSIONS
from tests.support.spark_sessions import connector

HERE = Path(__file__).parent
SPARK = Path(pyspark.__file__).parent
PATIENCE_S = 300.0


def environment():
    """Of a Spark of this Python, whatever else is installed."""
    root = str(HERE.parents[2])
    return {**os.environ, "SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": root,
            "LC_ALL": "C.UTF-8"}


def waited(condition, what):
    """Wait until something is so that another process does."""
    pause, ends_at = threading.Event(), time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < ends_at, f"waited {PATIENCE_S:.0f} s for {what}"
        pause.wait(0.2)
    return value


@pytest.fixture(scope="session")
def metastore(tmp_path_factory):
    """``metastore serve``: ``uri``, ``warehouse``."""
    place = tmp_path_factory.mktemp("metastore")
    ready = place / "ready.json"
    with (place / "log").open("wb") as log:
        served = subprocess.Popen(
            [sys.executable, "-m", "metastore", "serve", "--port", "0", "--http-port", "0", "--data-dir", place / "data", "--ready-file", ready],
            stdout=log, stderr=log, env=environment())
        waited(lambda: ready.exists() or served.poll() is not None, "the metastore")
        assert served.poll() is None, (place / "log").read_text()
        yield SimpleNamespace(uri=json.loads(ready.read_text())["thrift"], warehouse=(place / "data" / "warehouse").as_uri(), place=place)
        served.terminate()
        served.wait(60)


@pytest.fixture(scope="session")
def settings(metastore):
    """Return the settings of the how-to, and those that keep a Spark small."""
    return [f"--conf={key}={value}" for key, value in {
        "spark.jars": connector(), "spark.sql.catalog.spark_catalog": CATALOG, "spark.sql.extensions": EXTENSIONS,
        "spark.hadoop.hive.metastore.uris": metastore.uri, "spark.sql.warehouse.dir": metastore.warehouse,
        "spark.master": "local[2]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.sql.session.timeZone": "UTC"}.items()]


@contextmanager
def spark_server(name, settings, place, *arguments, more=()):
    """Run a class of Spark's that listens on the port given to its arguments; yield the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (place / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [SPARK / "bin" / "spark-submit", "--class", name, *settings, *(one.format(port=port) for one in more), "spark-internal",
             *(one.format(port=port) for one in arguments)],
            stdout=log, stderr=log, env=environment(), cwd=place)
        try:
            waited(lambda: _listens(port) or process.poll() is not None, name)
            assert process.poll() is None, (place / f"{name}.log").read_text()[-3000:]
            yield port
        finally:
            process.terminate()
            process.wait(60)


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def conversation(command, place):
    """``ask(statement)``: the rows of a statement as texts; its error as one text."""
    with (place / "client.log").open("ab") as log:
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8",
                                  env=environment(), cwd=place)
        try:
            def ask(statement):
                with suppress(BrokenPipeError):  # it has ended: its log says why
                    client.stdin.write(json.dumps(statement) + "\n")
                    client.stdin.flush()
                line = client.stdout.readline()
                assert line, (place / "client.log").read_text()[-3000:]
                answer = json.loads(line)
                return answer["error"] if "error" in answer else [tuple(row) for row in answer["rows"]]

            yield ask
        finally:
            with suppress(BrokenPipeError):
                client.stdin.close()
            client.wait(60)
            client.stdout.close()


@pytest.fixture(scope="session")
def jdbc(metastore, settings):
    """Serve a JDBC client of Spark's Thrift server, whose threads see no jars but those of the driver's class path."""
    with (spark_server("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", settings, metastore.place,
                       "--hiveconf", "hive.server2.thrift.port={port}", "--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1", more=["--driver-class-path", connector()]) as port,
          conversation(["java", "-cp", str(SPARK / "jars" / "*"), HERE / "JdbcClient.java", f"jdbc:hive2://127.0.0.1:{port}/default"],
                       metastore.place) as ask):
        yield lambda statements: [ask(one) for one in statements]


@pytest.fixture(scope="session")
def connect(metastore, settings):
    """Serve a client of Spark Connect in Python. Connect alone has no Hive support by itself."""
    pytest.importorskip("grpc", reason="grpcio is missing: make spark-clients installs it")
    with (spark_server("org.apache.spark.sql.connect.service.SparkConnectServer", settings, metastore.place,
                       more=["--conf=spark.connect.grpc.binding.port={port}", "--conf=spark.sql.catalogImplementation=hive"]) as port,
          conversation([sys.executable, HERE / "connect_client.py", f"sc://127.0.0.1:{port}"], metastore.place) as ask):
        yield lambda statements: [ask(one) for one in statements]


@pytest.fixture(scope="session")
def shell(metastore, settings, tmp_path_factory):
    """``spark-sql`` with a file of statements: after a failing one it goes on."""
    def run(statements):
        script = tmp_path_factory.mktemp("shell") / "statements.sql"
        script.write_text("".join(f"SELECT '@@{number}';\n{one};\n" for number, one in enumerate([*statements, "SELECT 1"])), "utf-8")
        done = subprocess.run(
            [SPARK / "bin" / "spark-sql", *settings, "--conf=spark.log.level=ERROR", "--hiveconf", "hive.cli.errors.ignore=true", "-f", script],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", check=False, env=environment(), cwd=script.parent)
        (metastore.place / "shell.log").write_text(done.stdout)
        lines = done.stdout.splitlines()
        assert f"@@{len(statements)}" in lines, done.stdout[-3000:]
        places = [lines.index(f"@@{number}") for number in range(len(statements) + 1)]
        return [_rows_or_error(lines[first + 1:last]) for first, last in pairwise(places)]

    return run


def _rows_or_error(lines):
    """Return the rows, or the error's text: a statement that failed prints no time, but the SELECT of its number always does."""
    shown = [line for line in lines if not line.startswith("Time taken: ")]
    if len(lines) - len(shown) == 1:
        return "\n".join(shown)
    return [tuple(None if value == "NULL" else value for value in line.split("\t")) for line in shown]
