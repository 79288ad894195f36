"""What a machine does to a server: its network goes silent, its clock is set back, its descriptors run out.

Each needs a tool or a right; where that is missing the test says so and is skipped.
"""

import ctypes.util
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from metastore.client import MetastoreClient
from metastore.db.embedded import EmbeddedPostgres
from tests.robustness.harness.processes import remove, scratch, wait_for

pytestmark = pytest.mark.robustness
QUICK = {"hive.metastore.acid.housekeeper.interval": "1s", "hive.metastore.acid.txn.cleaner.interval": "1s",
         "hive.compactor.worker.threads": "0", "hive.compactor.initiator.on": "false"}


@pytest.fixture
def place():
    directory = scratch()
    yield directory
    remove(directory)


@contextmanager
def serving(place, *more, before=(), env=None, host="127.0.0.1"):
    """Run a server in a process of its own; yield the process and its addresses."""
    ready = place / "ready.json"
    command = [*before, sys.executable, "-m", "metastore", "serve", "--host", host, "--port", "0", "--http-port", "0", "--data-dir",
               str(place / "data"), "--ready-file", str(ready), *more,
               *(word for key, value in QUICK.items() for word in ("--set", f"{key}={value}"))]
    with (place / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(env or {})})
    try:
        wait_for(lambda: ready.exists() or process.poll() is not None, "the server to be up")
        assert process.poll() is None, (place / "log").read_text()
        yield process, json.loads(ready.read_text())
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(40)
        process.kill()
        process.wait()


def ready(http, timeout=5.0):
    """Return the answer of /readyz, and the seconds that it took."""
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(f"{http}/readyz", timeout=timeout) as answer:
            body = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            body = json.load(error)
    return body, time.perf_counter() - began


def ticks(http):
    with urllib.request.urlopen(f"{http}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {loop: sum(sample.value for sample in family.samples if sample.labels.get("loop") == loop)
                for family in families if family.name == "metastore_loop_ticks" for loop in ("house_keeper", "txn_cleaner")}


# ------------------------------------------------------------------------------------------- a host that vanishes
def run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


@pytest.fixture
def far_side():
    """Yield the name of a network namespace, and our address on a pair of interfaces between the namespace and us."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("a network namespace needs root and `ip` (package iproute2)")
    name = f"ms{os.getpid()}"
    try:
        run("ip", "netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespace can be made here: {error.stderr.strip()}")
    try:
        run("ip", "link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        run("ip", "addr", "add", "10.213.7.1/30", "dev", f"{name}a")
        run("ip", "link", "set", f"{name}a", "up")
        for words in (["addr", "add", "10.213.7.2/30", "dev", f"{name}b"], ["link", "set", f"{name}b", "up"], ["link", "set", "lo", "up"]):
            run("ip", "-n", name, *words)
        yield name, "10.213.7.1"
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


IN_THERE = """
import json, socket, sys, threading, time, urllib.error, urllib.request
from metastore.client import MetastoreClient

http, thrift, vanish = sys.argv[1:]
with MetastoreClient(thrift) as client:
    assert client.get_all_databases() == ["default"]
    sys.stdout.write("serving\\n"); sys.stdout.flush()
    sys.stdin.readline()
    told = {"slowest": 0.0, "not_ready_after": None}
    began = time.monotonic()
    ended = []

    def ask():
        try:
            client.get_all_databases()
        except Exception as error:
            ended.append((time.monotonic() - began, str(error)))

    asker = threading.Thread(target=ask)
    asker.start()
    while time.monotonic() - began < 60 and (told["not_ready_after"] is None or asker.is_alive()):
        at = time.monotonic()
        try:
            with urllib.request.urlopen(http + "/readyz", timeout=20) as answer:
                is_ready = json.load(answer)["ready"]
        except urllib.error.HTTPError as error:
            error.close()
            is_ready = False
        told["slowest"] = max(told["slowest"], time.monotonic() - at)
        if not is_ready and told["not_ready_after"] is None:
            told["not_ready_after"] = time.monotonic() - began
        time.sleep(0.2)
    told["call"] = ended
    print(json.dumps(told), flush=True)
"""


def test_a_vanished_host_is_noticed(place, far_side):
    """PostgreSQL's machine says nothing any more, not even that it is gone."""
    name, ours = far_side
    (place / "postgres").mkdir(mode=0o711)
    postgres = EmbeddedPostgres(place / "postgres", settings={"listen_addresses": f"127.0.0.1,{ours}"}, ends_with_us=True)
    postgres.start()
    try:
        with (postgres._cluster / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.213.7.0/30 scram-sha-256\n")
        os.kill(postgres.pid, signal.SIGHUP)
        url = postgres.tcp_url.replace("127.0.0.1", ours)
        inside = ["ip", "netns", "exec", name]
        with serving(place, "--database-url", url, before=inside) as (_, addresses):
            with subprocess.Popen([*inside, sys.executable, "-c", IN_THERE, addresses["http"], addresses["thrift"], ""],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watcher:
                assert watcher.stdout.readline() == "serving\n"
                # Packets go on being sent to an address that is known, and nobody takes them.
                mac = subprocess.run(["cat", f"/sys/class/net/{name}a/address"], check=True, capture_output=True, text=True).stdout.strip()
                run("ip", "-n", name, "neigh", "replace", ours, "lladdr", mac, "dev", f"{name}b", "nud", "permanent")
                run("ip", "addr", "del", f"{ours}/30", "dev", f"{name}a")
                watcher.stdin.write("gone\n")
                watcher.stdin.flush()
                told = json.loads(watcher.stdout.readline())
            # Back again, so that the end is quick.
            run("ip", "addr", "add", f"{ours}/30", "dev", f"{name}a")
    finally:
        postgres.stop()
    assert told["slowest"] < 2, told
    assert told["not_ready_after"] < 10, told
    [(seconds, text)] = told["call"]
    assert seconds < 45, told
    assert "database" in text


# ------------------------------------------------------------------------------------------- a clock that is set back
def faketime():
    for path in sorted(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1")):
        return path
    found = ctypes.util.find_library("faketimeMT")
    return Path(found) if found else pytest.skip("no libfaketime here: apt-get install libfaketime")


def test_a_clock_that_is_set_back_stops_no_loop(place):
    library, clock = faketime(), place / "clock"
    clock.write_text("+0\n")
    env = {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
           "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    url = EmbeddedPostgres(place / "postgres", ends_with_us=True)
    (place / "postgres").mkdir(mode=0o711)
    url.start()
    try:
        with serving(place, "--database-url", url.url, env=env) as (_, addresses):
            wait_for(lambda: min(ticks(addresses["http"]).values(), default=0) > 1, "the loops to run")
            clock.write_text("-1h\n")
            before = ticks(addresses["http"])
            wait_for(lambda: all(count > before[loop] + 2 for loop, count in ticks(addresses["http"]).items()),
                     "the loops to go on an hour earlier")
    finally:
        url.stop()


# ------------------------------------------------------------------------------------------- no descriptors left
def test_without_descriptors_nothing_is_said_to_have_died(place):
    with serving(place) as (process, addresses), ExitStack() as held:
        postgres = EmbeddedPostgres(place / "data").pid
        limit = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        used = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + 3, limit[1]))
        host, port = addresses["thrift"].removeprefix("thrift://").split(":")
        for _ in range(20):
            held.enter_context(socket.create_connection((host, int(port)), timeout=20))
        log = place / "log"
        wait_for(lambda: "postgres_watch_failed" in log.read_text() or "postgres_died" in log.read_text(), "the watcher to look")
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limit)
        held.close()
        with MetastoreClient(addresses["thrift"]) as client:
            assert client.get_all_databases() == ["default"]
        assert "postgres_died" not in log.read_text()

        os.kill(postgres, signal.SIGKILL)
        wait_for(lambda: "postgres_restarted" in log.read_text(), "PostgreSQL to be started again")
        before = ticks(addresses["http"])
        wait_for(lambda: all(count > before[loop] for loop, count in ticks(addresses["http"]).items()), "the loops to go on")
    assert process.returncode == 0
