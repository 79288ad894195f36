"""The files that a request passes, as CONTRIBUTING names them: a page that is wrong about them is worse than none."""

import re
import threading
from pathlib import Path

import pytest

from metastore.thrift_gen.hive_metastore import ttypes
from tests.integration.planner.conftest import WHO
from tests.integration.planner.test_calls import insert
from tests.integration.planner.test_writes import staged
from tests.support.acid.creating import create_database, create_table

ROOT = Path(__file__).parents[3]
AROUND = ("db/", "telemetry/", "thrift_gen/", "ids.py", "errors.py", "partition_names.py", "backoff.py")


class Passed:
    """Notes the files of the functions that are called."""

    def __init__(self):
        self.noted = {}

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(f"{ROOT}/metastore/"):
            self.noted.setdefault(threading.current_thread().name, set()).add(code.co_filename.removeprefix(f"{ROOT}/metastore/"))

    def files(self, is_of):
        found = set().union(*(files for thread, files in self.noted.items() if is_of(thread)))
        return {file for file in found if not file.startswith(AROUND)}


@pytest.fixture(autouse=True)
def passed():
    """Ahead of the server, whose threads look here before they begin."""
    noting = Passed()
    threading.setprofile(noting)
    yield noting
    threading.setprofile(None)


def named(heading):
    """Return the files that a list of CONTRIBUTING names."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition(heading)[2].partition("\n\n")[0]
    return set(re.findall(r"`([\w/]+\.py)`", section))


def is_of_metastore(thread):
    return thread == "thrift-loop" or thread.startswith("handler-")


def test_a_lock_passes_these_files(client, passed):
    txn = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids[0]
    part = ttypes.LockComponent(ttypes.LockType.SHARED_READ, ttypes.LockLevel.TABLE, "d", "t")
    request = ttypes.LockRequest([part], txn, "ann", "h1")
    client.lock(request)
    passed.noted.clear()
    client.lock(request)

    assert passed.files(is_of_metastore) == named("`lock` passes these files")


def update(call, table):
    """Make the calls of an UPDATE through Spark's catalog, with files that are names only."""
    call("table", db="d", table=table)
    txn = call.begin()
    call("lock", txn=txn, reads=[f"d.{table}"], writes=[{"table": f"d.{table}", "kind": "UPDATE"}], wait_s=0, **WHO)
    seen = call("snapshot", txn=txn, tables=[f"d.{table}"])
    call("plan", table=f"d.{table}", txns=seen["txns"], write_ids=seen["write_ids"][f"d.{table}"])
    call("write", txn=txn, table=f"d.{table}", statement=0, kind="UPDATE")
    call("publish", txn=txn, table=f"d.{table}", statement=0, overwrite=None, files=[staged("s/i"), staged("s/d", is_delete=True)])
    call("announce", txn=txn, table=f"d.{table}", statement=0, operation="UPDATE", keys=[], overwrite=None)
    call("commit", txn=txn)


def test_an_update_passes_these_files(client, call, passed):
    create_database(client)
    for table in ("t", "u"):
        create_table(client, table, {"id": "int"})
        insert(client, table, {"id": 1})
    update(call, "t")
    passed.noted.clear()
    update(call, "u")

    found = passed.files(lambda thread: thread.startswith(("planner", "files-")))
    assert {file for file in found if file.startswith(("web/", "planner/", "client/"))} == named("An UPDATE through Spark's catalog")
