"""``metastore worker``: a process that claims compactions of servers that run none themselves."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
import pytest

from metastore.app import App
from metastore.client import MetastoreClient
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.streaming import connect
from tests.support.probing import readyz
from tests.support.thrift_server import until

ROOT = Path(__file__).parents[3]


@pytest.fixture
def app(database_url, tmp_path):
    """Yield a server whose loops do not compact."""
    app = App(build([SettingsSource("test", {
        "metastore.database.url": database_url, "hive.metastore.port": "0", "metastore.http.port": "0",
        "hive.metastore.warehouse.dir": (tmp_path / "warehouse").as_uri(), "hive.compactor.worker.threads": "0",
        "hive.compactor.initiator.on": "false", "hive.compactor.cleaner.on": "false"})]))
    app.start()
    yield app
    app.stop()


def command(*options):
    return [sys.executable, "-m", "metastore", "worker", "--http-port", "0", *map(str, options)]


@contextmanager
def working(app, tmp_path, *options, path=""):
    ready = tmp_path / "worker.json"
    with (tmp_path / "worker.log").open("w") as log:
        process = subprocess.Popen(command(
            "--uri", app.thrift_uri, "--database-url", app.database_url, "--warehouse", (tmp_path / "warehouse").as_uri(),
            "--ready-file", ready, "--set", "hive.compactor.worker.sleep.time=100ms", *options), stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{path}:{os.environ['PATH']}"})
    try:
        wait_for(lambda: ready.exists() or process.poll() is not None)
        assert ready.exists(), (tmp_path / "worker.log").read_text()
        yield process, json.loads(ready.read_text())
    finally:
        process.kill()
        process.wait(60)


def wait_for(condition):
    for _ in range(6000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come true in a minute")


def transactional(types, name):
    columns = [types.FieldSchema("a", "int", None)]
    orc = "org.apache.hadoop.hive.ql.io.orc"
    storage = types.StorageDescriptor(
        cols=columns, inputFormat=f"{orc}.OrcInputFormat", outputFormat=f"{orc}.OrcOutputFormat",
        serdeInfo=types.SerDeInfo(serializationLib=f"{orc}.OrcSerde", parameters={}), parameters={})
    return types.Table(tableName=name, dbName="default", sd=storage, partitionKeys=[], tableType="MANAGED_TABLE",
                       parameters={"transactional": "true"})


def test_it_takes_what_is_asked_for_and_ends_with_0(app, tmp_path):
    with MetastoreClient(app.thrift_uri) as client, working(app, tmp_path) as (process, addresses):
        types = client.types
        client.create_table(transactional(types, "facts"))
        client.compact2(types.CompactionRequest(dbname="default", tablename="facts", type=types.CompactionType.MAJOR))

        def states():
            return [(one.state, one.workerid) for one in client.show_compact(types.ShowCompactRequest()).compacts]

        wait_for(lambda: states()[0][0] not in {"initiated", "working"})
        assert states()[0][0] == "refused"  # there is nothing in it
        told = until(lambda: (told := readyz(addresses["http"]))["ready"] and told)
        assert told["parts"].keys() == {"database", "schema", "loops"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not (tmp_path / "worker.json").exists()
    assert '"compaction_id": 1, "entity": "default.facts"' in (tmp_path / "worker.log").read_text()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_a_job_ends_with_it_and_its_compaction_is_handed_back(app, tmp_path, ending):
    """The job is a stand-in for spark-submit that never ends by itself; the end of a pipe tells that it is gone."""
    pipe, submit = tmp_path / "pipe", tmp_path / "spark-submit"
    os.mkfifo(pipe)
    submit.write_text(f"#!/bin/sh\nexec 3>{pipe}\necho up >&3\nsleep 600\n")
    submit.chmod(0o755)
    by_submit = ("--set", "metastore.compactor.submit=spark-submit")
    with MetastoreClient(app.thrift_uri) as client:
        types = client.types
        client.create_table(transactional(types, "facts"))
        for _ in range(2):
            with connect("default.facts", client=client) as connection, connection.transaction():
                connection.write([{"a": 1}])
        client.compact2(types.CompactionRequest(dbname="default", tablename="facts", type=types.CompactionType.MAJOR))
        with working(app, tmp_path, *by_submit, path=tmp_path) as (process, _), pipe.open() as told:
            assert told.readline() == "up\n"
            process.send_signal(ending)
            assert told.read() == ""
            assert process.wait(60) == (0 if ending == signal.SIGTERM else -ending)
        [request] = client.show_compact(types.ShowCompactRequest()).compacts
        assert request.state == ("initiated" if ending == signal.SIGTERM else "working")  # until its lease is over


def test_it_leaves_the_schema_to_the_servers(database_url, tmp_path):
    session = psycopg2.connect(database_url)
    with session, session.cursor() as cursor:
        cursor.execute("UPDATE alembic_version SET version_num = '0001'")
    session.close()
    done = subprocess.run(command("--database-url", database_url, "--warehouse", tmp_path.as_uri()), check=False,
                          capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 3
    assert "has schema version 0001" in done.stderr
    assert "metastore db upgrade" in done.stderr


def test_it_starts_again_in_the_middle_of_an_upgrade(app, database_url, tmp_path):
    """The schema is that of a newer release already, which says that this one can live with it."""
    with closing(psycopg2.connect(database_url)) as session, session, session.cursor() as cursor:
        cursor.execute("UPDATE alembic_version SET version_num = '9000'")
    with working(app, tmp_path) as (process, addresses):
        until(lambda: readyz(addresses["http"])["ready"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.parametrize(("options", "said"), [
    (["--warehouse", "file:/w"], "Neither a database URL nor a data directory"),
    (["--database-url", "postgresql://nobody@127.0.0.1:1/x"], "hive.metastore.warehouse.dir is not set"),
])
def test_what_is_missing_is_named(options, said):
    done = subprocess.run(command(*options), check=False, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
