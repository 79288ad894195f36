"""The commands of docs/how-to/in-front-of-an-existing-metastore.md are run as they stand there; Spark's in interop."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from benchmarks.peers import program
from metastore.client import MetastoreClient
from tests.integration.txns.test_adoption import SCHEMA, run
from tests.support import thrift_server

PAGE = Path(thrift_server.__file__).parents[2] / "docs" / "how-to" / "in-front-of-an-existing-metastore.md"
SERVE, SPARK, ADOPT, RELEASE = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)


def shell(text, **environment):
    path = f"{Path(sys.executable).parent}:{Path(program('psql')).parent}:{os.environ['PATH']}"
    return subprocess.Popen(["bash", "-euo", "pipefail", "-c", text], env={**os.environ, "PATH": path, **environment},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def test_the_server_is_started_in_front(behind, database_url, database, catalog, tmp_path):
    ready = tmp_path / "ready.json"
    text = SERVE.strip().replace("metastore serve", "exec metastore serve", 1)
    for written, here in (("--port 9083", "--port 0 --http-port 0"), ("thrift://localhost:9093", behind.thrift_uri),
                          ("file:///warehouse", tmp_path.as_uri())):
        assert written in text
        text = text.replace(written, here)
    process = shell(f"{text} --no-loops --ready-file {ready} --database-url '{database_url}'")
    try:
        pause = threading.Event()
        while not ready.exists():
            assert process.poll() is None, process.stdout.read()
            pause.wait(0.01)
        with MetastoreClient(json.loads(ready.read_text())["thrift"]) as client:
            assert client.get_all_databases() == catalog.get_all_databases()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def test_transactions_are_taken_over_and_handed_back(postgres, database_url, database, tmp_path):
    assert "spark-sql" in SPARK
    with postgres.empty() as hive_url:
        run(hive_url, SCHEMA + """; DELETE FROM "TXN_COMPONENTS"; UPDATE "TXNS" SET "TXN_STATE" = 'c'""")
        process = shell(f"cd {tmp_path}; {ADOPT}{RELEASE}", DATABASE=database_url, HIVE_DATABASE=hive_url)
        told, _ = process.communicate()
        assert process.returncode == 0, told
        assert told.count("next_txn_id") == 2
        assert run(hive_url, """SELECT nextval('"TXNS_TXN_ID_SEQ"')""") == [(44,)]
    assert database.once("SELECT next_txn_id FROM txn_counter") == [(43,)]
