"""The sidecar as deploy/sidecar says it is started: ready, stopped as the kubelet stops it, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from metastore.client import MetastoreClient
from metastore.db.embedded import EmbeddedPostgres

SIDECARS = Path(__file__).parents[2] / "deploy" / "sidecar"


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="metastore-sidecar-") as path:
        Path(path).chmod(0o711)
        yield Path(path)
        left = EmbeddedPostgres(Path(path) / "data").pid
        if left is not None:
            os.kill(left, signal.SIGQUIT)


def arguments(shape, place):
    """Those of the pod template, with the directories and ports of a test."""
    template = yaml.safe_load((SIDECARS / f"{shape}.yaml").read_text())
    [sidecar] = template["spec"]["initContainers"]
    ours = {"--warehouse": (place / "warehouse").as_uri(), "--data-dir": place / "data", "--ready-file": place / "ready.json"}
    names = [text.partition("=")[0] for text in sidecar["args"]]
    assert ours.keys() <= set(names)
    return [f"{name}={ours[name]}" if name in ours else text for name, text in zip(names, sidecar["args"], strict=True)] + [
        "--port=0", "--http-port=0"]


@contextmanager
def beside_a_driver(shape, place, environment):
    ready = place / "ready.json"
    with (place / "log").open("a") as log:
        process = subprocess.Popen([sys.executable, "-m", "metastore", *arguments(shape, place)], stderr=log,
                                   env={**os.environ, **environment})
    try:
        for _ in range(12000):
            if ready.exists() or process.poll() is not None:
                break
            threading.Event().wait(0.01)
        assert ready.exists(), (place / "log").read_text()
        addresses = json.loads(ready.read_text())
        assert addresses["thrift"].startswith("thrift://127.0.0.1:")
        with MetastoreClient(addresses["thrift"]) as client:
            yield client
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(30)


@pytest.mark.parametrize("shape", ["sidecar", "sidecar-own"])
def test_what_a_driver_wrote_is_there_for_the_next_one(shape, place, postgres):
    """Also a transaction that was open when the pod ended."""
    with postgres.cloned() as url:
        environment = {"METASTORE_CONF_METASTORE_DATABASE_URL": url} if shape == "sidecar" else {}
        with beside_a_driver(shape, place, environment) as client:
            types = client.types
            client.create_database(types.Database(name="lake", locationUri=(place / "warehouse" / "lake.db").as_uri()))
            opened = client.open_txns(types.OpenTxnRequest(2, "ann", "driver")).txn_ids
            written = client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest("lake", "facts", txnIds=opened)).txnToWriteIds
            client.commit_txn(types.CommitTxnRequest(opened[0]))
        with beside_a_driver(shape, place, environment) as client:
            assert client.get_all_databases() == ["default", "lake"]
            assert client.get_open_txns().open_txns == [opened[1]]
            client.commit_txn(types.CommitTxnRequest(opened[1]))
            [valid] = client.get_valid_write_ids(types.GetValidWriteIdsRequest(["lake.facts"])).tblValidWriteIds
            assert (valid.writeIdHighWaterMark, valid.invalidWriteIds) == (max(one.writeId for one in written), [])
            assert client.open_txns(types.OpenTxnRequest(1, "ann", "driver")).txn_ids[0] > opened[1]
