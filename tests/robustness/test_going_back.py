"""The embedded PostgreSQL back to a point in time: from a base backup and archived WAL, whole or as it was."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing

import psycopg2
import pytest

from metastore.app import App
from metastore.client import MetastoreClient
from metastore.config.settings import SettingsSource, build
from tests.robustness.harness.processes import remove, scratch

pytestmark = [pytest.mark.robustness, pytest.mark.timeout(900)]


@pytest.fixture
def place():
    directory = scratch()
    yield directory
    remove(directory)


def serving(place):
    return App(build([SettingsSource("test", {
        "metastore.database.embedded.archive": str(place / "archive"), "hive.metastore.port": "0", "metastore.http.port": "0"})]),
        data_dir=place / "data", loops=False)


def opened(client):
    return client.open_txns(client.types.OpenTxnRequest(num_txns=1, user="ann", hostname="here")).txn_ids[0]


def test_back_to_the_instant_before_a_mistake(place):
    command = [sys.executable, "-m", "metastore", "db"]
    common = ["--data-dir", str(place / "data"), "--set", f"metastore.database.embedded.archive={place / 'archive'}"]
    app = serving(place)
    app.start()
    with MetastoreClient(app.thrift_uri) as client:
        types = client.types
        base = subprocess.run([*command, "backup", "--base", str(place / "base"), *common, "-o", "json"], check=True, capture_output=True)
        client.create_database(types.Database("wanted"))
        with closing(psycopg2.connect(app.database_url)) as session, session.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp() AT TIME ZONE 'UTC'")
            instant = cursor.fetchone()[0].isoformat() + "+00:00"
        client.drop_database("wanted", deleteData=False, cascade=True)
        client.create_database(types.Database("unwanted"))
        last = opened(client)
    app.stop()

    back = [*command, "restore", str(place / "base"), "--replace", "--to-time", instant, "--sha256", json.loads(base.stdout)["sha256"], *common]
    killed = subprocess.run(back, env={**os.environ, "METASTORE_FAILPOINTS": "restore.before_commit=kill"}, capture_output=True, text=True,
                            check=False)
    app = serving(place)
    app.start()
    with MetastoreClient(app.thrift_uri) as client:
        before = client.get_all_databases()
    app.stop()
    done = subprocess.run([*back, "-o", "json"], capture_output=True, text=True, check=False)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert before == ["default", "unwanted"]
    assert done.returncode == 0, done.stderr
    app = serving(place)
    app.start()
    with MetastoreClient(app.thrift_uri) as client:
        assert client.get_all_databases() == ["default", "wanted"]
        assert last < json.loads(done.stdout)["next_txn_id"] <= opened(client)
    app.stop()


def test_an_instant_that_was_not_archived_changes_nothing(place):
    common = ["--data-dir", str(place / "data"), "--set", f"metastore.database.embedded.archive={place / 'archive'}"]
    command = [sys.executable, "-m", "metastore", "db"]
    app = serving(place)
    app.start()
    app.stop()
    subprocess.run([*command, "backup", "--base", str(place / "base"), *common], check=True, capture_output=True)

    late = subprocess.run([*command, "restore", str(place / "base"), "--replace", "--to-time", "2199-01-01T00:00:00Z", *common],
                          capture_output=True, text=True, check=False)
    kept = subprocess.run([*command, "restore", str(place / "base"), *common], capture_output=True, text=True, check=False)

    assert (late.returncode, "PostgreSQL did not start" in late.stderr) == (3, True)
    assert "There is a PostgreSQL in" in kept.stderr
    app = serving(place)
    app.start()
    app.stop()
