"""A planner that is killed takes nothing with it but the calls that it was answering."""

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from metastore.loops.reaper import EXPIRY, Reaper
from tests.integration.planner.conftest import WHO, Caller
from tests.support.acid.creating import create_database, create_table
from tests.support.thrift_server import until


@pytest.fixture
def process(server, tmp_path):
    """Run a planner as a process of its own, and yield (process, address)."""
    ready = tmp_path / "planner.json"
    started = subprocess.Popen([sys.executable, "-m", "metastore", "planner", "--uri", server.thrift_uri, "--ready-file", str(ready)],
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until(lambda: ready.exists() or started.poll() is not None)
    host, port = json.loads(Path(ready).read_text())["planner"].removeprefix("http://").split(":")
    yield started, (host, int(port))
    started.kill()
    started.wait(60)


def test_in_the_middle_of_a_call(process, client, call, server, test_clock):
    create_database(client)
    create_table(client, "t", {"id": "int"})
    holder, waiter = call.begin(), call.begin()
    call("lock", txn=holder, writes=[{"table": "d.t", "kind": "DDL_EXCLUSIVE"}], **WHO)
    killed, address = process
    lost, waiting = [], Caller(address)

    def wait():
        try:
            waiting("lock", txn=waiter, reads=["d.t"], wait_s=3600, **WHO)
        except OSError as error:
            lost.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: len(client.show_locks(client.types.ShowLocksRequest(dbname="d")).locks) == 2)

    os.kill(killed.pid, signal.SIGKILL)
    thread.join()
    waiting.connection.close()

    assert len(lost) == 1
    assert call("heartbeat", txn=waiter) == {}   # another planner goes on with the same transaction
    call("abort", txn=holder)
    assert call("lock", txn=waiter, reads=["d.t"], **WHO)["txn"] == waiter
    assert call("snapshot", txn=waiter, tables=["d.t"])["write_ids"]
    test_clock.advance(timedelta(minutes=6))   # and where nobody does, the time-out ends it
    Reaper(server.services.purges, EXPIRY).tick()
    assert client.types.TxnState.OPEN not in [one.state for one in client.get_open_txns_info().open_txns]
    assert client.show_locks(client.types.ShowLocksRequest()).locks == []


def test_it_ends_with_0_when_it_is_told_to(process):
    started, _ = process
    started.terminate()
    assert started.wait(60) == 0
