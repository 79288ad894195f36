"""``metastore serve`` as a process: ready file, one owner, an orderly end, and what SIGKILL leaves behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from metastore.client import MetastoreClient
from metastore.db.embedded import EmbeddedPostgres
from tests.support.probing import readyz
from tests.support.thrift_server import until


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="metastore-serve-") as path:
        Path(path).chmod(0o711)
        yield Path(path)
        postgres = EmbeddedPostgres(Path(path) / "data")
        if postgres.pid is not None:   # a test killed its owner
            os.kill(postgres.pid, signal.SIGQUIT)


@pytest.fixture(scope="module")
def made():
    """Yield the data directory that a server has made and left."""
    with tempfile.TemporaryDirectory(prefix="metastore-serve-") as path:
        Path(path).chmod(0o711)
        with serving(Path(path)) as (process, _):
            process.terminate()
            assert process.wait(60) == 0
        yield Path(path) / "data"


@pytest.fixture
def kept(place, made):
    """Copy the directory of ``made`` into the place, and return the place: to make a new directory takes longer."""
    subprocess.run(["cp", "-a", made, place / "data"], check=True)
    return place


def command(place, *more):
    return [sys.executable, "-m", "metastore", "serve", "--host", "127.0.0.1", "--port", "0", "--http-port", "0", "--data-dir",
            str(place / "data"), "--no-loops", *more]


@contextmanager
def serving(place, *more, env=None, stderr=None, program=("-m", "metastore")):
    ready = place / "ready.json"
    ready.unlink(missing_ok=True)
    with (place / "log").open("a") as log:
        process = subprocess.Popen([sys.executable, *program, *command(place, *more)[3:], "--ready-file", str(ready)],
                                   stderr=stderr or log, env={**os.environ, **(env or {})})
    try:
        for _ in range(6000):
            if ready.exists() or process.poll() is not None:
                break
            threading.Event().wait(0.01)
        assert ready.exists(), (place / "log").read_text()
        yield process, json.loads(ready.read_text())
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(60)


def test_it_serves_ends_with_0_and_comes_back_with_what_it_knew(place):
    with serving(place) as (process, addresses):
        assert set(addresses) == {"thrift", "http", "planner", "database_url", "pid", "version"}
        assert addresses["pid"] == process.pid
        assert (place / "ready.json").stat().st_mode & 0o077 == 0
        with MetastoreClient(addresses["thrift"]) as client:
            client.create_database(client.types.Database(name="kept", locationUri=f"file:{place}/data/warehouse/kept.db"))
        until(lambda: readyz(addresses["http"])["ready"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not (place / "ready.json").exists()
    assert EmbeddedPostgres(place / "data").pid is None

    with serving(place) as (process, addresses):
        with MetastoreClient(addresses["thrift"]) as client:
            assert client.get_all_databases() == ["default", "kept"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_after_sigkill_the_next_one_goes_on(kept):
    with serving(kept) as (process, addresses):
        with MetastoreClient(addresses["thrift"]) as client:
            client.create_database(client.types.Database(name="kept", locationUri=f"file:{kept}/data/warehouse/kept.db"))
        process.kill()
        process.wait(60)

    with serving(kept) as (process, addresses):
        with MetastoreClient(addresses["thrift"]) as client:
            assert client.get_all_databases() == ["default", "kept"]
        process.terminate()
        assert process.wait(60) == 0


def planned(uri):
    """Return the planner's answer about a table that does not exist."""
    request = urllib.request.Request(f"{uri}/v1/table", b'{"db": "default", "table": "nothing"}', {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())["kind"]


def planners(place):
    """Return the processes of the planner that the server has started, the latest one last."""
    lines = [json.loads(line) for line in (place / "log").read_text().splitlines() if '"planner_started"' in line]
    return [line["pid"] for line in lines]


def has_ended(pid):
    """Return True if a process has ended; an ended process has no command line any more, even before its parent waits for it."""
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def test_a_planner_beside_it_comes_with_the_first_call_and_again_when_it_was_killed(kept):
    with serving(kept, env={"METASTORE_READY_FILE": str(kept / "ready.json")}) as (process, addresses):
        with MetastoreClient(addresses["thrift"]) as client:
            uri = client.get_config_value("hive.metastore.planner.uri", "")
        assert uri == addresses["planner"]
        assert planners(kept) == []   # nobody has asked it for anything yet

        assert planned(uri) == "absent"
        assert json.loads((kept / "ready.json").read_text()) == addresses   # the variable is the server's
        [first] = planners(kept)
        os.kill(first, signal.SIGKILL)
        until(lambda: has_ended(first))

        assert planned(uri) == "absent"
        [_, second] = planners(kept)
        process.kill()   # whose planner must not outlive it
        process.wait(60)
        until(lambda: has_ended(second))


def test_postgres_is_killed_under_it(kept):
    """Calls are refused with a sentence meanwhile, and served again without anybody's help."""
    with serving(kept) as (process, addresses):
        postgres = EmbeddedPostgres(kept / "data")
        killed = postgres.pid
        os.kill(killed, signal.SIGKILL)
        with MetastoreClient(addresses["thrift"]) as client:
            answered = None
            while answered is None:
                try:
                    answer = client.get_all_databases()
                    if postgres.pid not in {None, killed}:
                        answered = answer
                except client.types.MetaException as refused:
                    assert "database" in refused.message
                threading.Event().wait(0.01)
            assert answered == ["default"]
        process.terminate()
        assert process.wait(60) == 0


def test_no_secret_and_no_trace_in_the_log(place):
    with serving(place) as (process, addresses):
        password = addresses["database_url"].split(":")[2].split("@")[0]
        process.terminate()
        process.wait(60)
    log = (place / "log").read_text()

    assert "serving" in log
    assert password not in log
    assert "Traceback" not in log
    assert all(json.loads(line)["event"] for line in log.splitlines())


def malformed(thrift):
    """Send what is no message; true when the server has closed the connection."""
    host, port = thrift.removeprefix("thrift://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as rude:
        rude.sendall(b"\x80\x01\x00\x01\xff\xff\xff\xff")
        return rude.recv(1) == b""


@pytest.mark.parametrize("log", ["reader gone", "disk full"])
def test_a_log_that_cannot_be_written_stops_nothing(place, database_url, log):
    if log == "disk full":
        written = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, written = os.pipe()
        os.close(reader)
    with serving(place, "--database-url", database_url, stderr=written) as (process, addresses):
        os.close(written)
        for _ in range(3):
            assert malformed(addresses["thrift"])
        with MetastoreClient(addresses["thrift"]) as client:
            assert client.get_all_databases() == ["default"]
        process.terminate()
        assert process.wait(60) == 0


TOLD_WHILE_LOADING = """
import importlib.abc, os, signal, sys

class Told(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGTERM)

module = sys.argv.pop(1)
sys.meta_path.insert(0, Told())
from metastore.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["metastore.cli.main", "click", "metastore.cli.serve", "metastore.app", "psycopg2"])
def test_told_to_end_while_it_is_still_loading(place, module):
    """The signal comes when this module is about to be loaded, so before anything is there."""
    program = [sys.executable, "-c", TOLD_WHILE_LOADING, module, *command(place)[3:]]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)

    assert (ended.returncode, ended.stderr.count("Traceback")) == (0, 0), ended.stderr
    assert EmbeddedPostgres(place / "data").pid is None


PLANTED = """
import sys
from metastore.cli.main import main
from metastore.thrift_server.loop.listening_socket import ListeningSocket

def broken(server):
    raise ValueError("a bug that nobody foresaw")

ListeningSocket.accept = broken
main(sys.argv[1:])
"""


def test_a_server_without_its_loop_ends(place, database_url):
    """Half a service is none: who supervises it starts it again."""
    with serving(place, "--database-url", database_url, program=["-c", PLANTED]) as (process, addresses):
        with suppress(OSError):
            malformed(addresses["thrift"])
        assert process.wait(60) == 1
    told = (place / "log").read_text()
    assert "The thread 'thrift-loop' ended with an error" in told
    assert '"event": "thread_lost"' in told
    assert "a bug that nobody foresaw" in told
    assert not (place / "ready.json").exists()


def served_by(process):
    """Return the number of getName calls that a process has answered, by its own /metrics."""
    with urllib.request.urlopen(f"{process['http']}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith('metastore_calls_total{') and "getName" in line)


def until_gone(pids):
    for _ in range(6000):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        threading.Event().wait(0.01)
    return False


def test_several_processes_share_the_port_and_end_together(kept):
    with serving(kept, "--processes", "2") as (process, addresses):
        assert set(addresses) == {"thrift", "http", "planner", "database_url", "pid", "version", "processes"}
        assert addresses["pid"] == process.pid
        children = addresses["processes"]
        assert len({one["pid"] for one in children} | {process.pid}) == 3
        for _ in range(60):
            with MetastoreClient(addresses["thrift"]) as client:
                assert client.getName()
        assert all(served_by(one) for one in children)
        assert sum(served_by(one) for one in children) == 60
        second = refused(kept, "--port", addresses["thrift"].rpartition(":")[2], "--processes", "2")
        assert (second.returncode, "cannot be used: Address already in use" in second.stderr) == (2, True), second.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0

    assert until_gone([one["pid"] for one in children])
    assert not (kept / "ready.json").exists()
    assert EmbeddedPostgres(kept / "data").pid is None
    assert "Traceback" not in (kept / "log").read_text()
    assert "Fatal" not in (kept / "log").read_text()   # what the interpreter says of a thread that waits for input


def test_when_one_process_dies_all_end_and_say_so(kept):
    with serving(kept, "--processes", "2") as (process, addresses):
        victim, other = addresses["processes"]
        os.kill(victim["pid"], signal.SIGKILL)
        assert process.wait(60) == 1

    assert until_gone([victim["pid"], other["pid"]])
    assert f"Server process {victim['pid']} ended with -9, so all are ended." in (kept / "log").read_text()
    assert EmbeddedPostgres(kept / "data").pid is None


def test_when_the_first_process_is_killed_the_others_end_by_themselves(kept):
    with serving(kept, "--processes", "2", env={"TMPDIR": str(kept)}) as (process, addresses):
        process.kill()
        process.wait(60)
        assert until_gone([one["pid"] for one in addresses["processes"]])


def refused(place, *more, env=None):
    return subprocess.run(command(place, *more), capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, **(env or {})})


def test_a_second_process_on_the_same_directory(kept):
    with serving(kept) as (process, addresses):
        second = refused(kept)
        with MetastoreClient(addresses["thrift"]) as client:
            assert client.get_all_databases() == ["default"]

    assert second.returncode == 1
    assert f"process id {process.pid}" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize(("arguments", "code", "sentence"), [
    (["--set", "hive.txn.timout=5s"], 2, "The closest is hive.txn.timeout"),
    (["--set", "hive.txn.timeout=never"], 2, "expected a number with a unit"),
    (["--port", "x"], 2, "--port"),
    (["--processes", "0"], 2, "0 is not in the range"),
    (["--config", "/nothing.yaml"], 2, "cannot be read"),
    (["--database-url", "postgresql://u:hush@127.0.0.1:1/x"], 3, "does not answer"),
    (["--database-url", "mysql://h/x"], 2, "PostgreSQL is the only database"),
    (["--database-url", "postgresql://u:hush@h/x?nothing=1"], 2, "URL of the database cannot be read"),
    (["--data-dir", "/proc/x"], 2, "The data directory /proc/x cannot be used"),
    (["--processes", "2", "--data-dir", "/proc/x"], 2, "The data directory /proc/x cannot be used"),
    (["--ready-file", "/dev/null/x"], 1, "Not a directory: /dev/null/x"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_stops_the_start(place, arguments, code, sentence):
    ended = refused(place, *arguments)

    assert (ended.returncode, sentence in ended.stderr) == (code, True), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "hush" not in ended.stderr


def test_asking_for_the_version_makes_nothing(place):
    asked = subprocess.run([sys.executable, "-m", "metastore", "db", "version", "--data-dir", str(place / "none"), "-o", "json"],
                           capture_output=True, text=True, check=False, timeout=120)

    assert (asked.returncode, json.loads(asked.stdout)["database"], asked.stderr) == (1, "none", "")
    assert list(place.iterdir()) == []


def test_a_port_that_is_taken(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = refused(place, "--http-port", str(port))
    assert ended.returncode == 2
    assert f"The HTTP port {port} on 127.0.0.1 cannot be used" in ended.stderr


def test_a_server_with_a_newer_schema_is_refused(place, database, database_url):
    database.once("UPDATE alembic_version SET version_num = '9000'; UPDATE oldest_release SET version = '8999'")
    ended = refused(place, "--database-url", database_url)
    assert ended.returncode == 1
    assert "made by a newer release" in ended.stderr


def test_the_drain_takes_no_longer_than_it_is_given(database, database_url, tmp_path, monkeypatch):
    """A call and a tick that do not end are waited for side by side."""
    from metastore.app import App
    from metastore.config.settings import SettingsSource, build
    from metastore.loops.reaper import OpenTxnsCounter
    from metastore.loops.scheduler import Scheduler
    from metastore.thrift_server.server import Server

    ticking, release = threading.Event(), threading.Event()
    ends = []

    def noted(part, wait):
        original = getattr(part, wait)
        monkeypatch.setattr(part, wait, lambda *arguments: (ends.append(app.server._draining), original(*arguments))[1])

    noted(Scheduler, "stop")
    noted(Server, "drain")
    monkeypatch.setattr(OpenTxnsCounter, "tick", lambda _: ticking.set() or release.wait(60))
    app = App(build([SettingsSource("test", {
        "metastore.database.url": database_url, "hive.metastore.thrift.bind.host": "127.0.0.1", "hive.metastore.port": "0",
        "metastore.http.port": "0", "hive.metastore.warehouse.dir": tmp_path.as_uri(), "hive.compactor.initiator.on": "false",
        "hive.compactor.worker.threads": "0", "metastore.server.drain.timeout": "3s"})]))
    app.start()
    try:
        assert ticking.wait(60)
        with database.begin() as pg:
            pg.sql("LOCK TABLE databases")
            asker = threading.Thread(target=lambda: _asked(app.thrift_uri))
            asker.start()
            while not app.database.pool.lent or not pg.sql("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'databases'::regclass"):
                pass
            app.stop()
    finally:
        release.set()
    asker.join(60)
    assert len(ends) == 2
    assert ends[0] is not None, "the calls' time began before the ticks were waited for"
    assert ends[0] == ends[1]


def _asked(uri):
    with suppress(Exception), MetastoreClient(uri) as client:
        client.get_all_databases()


def test_two_servers_share_a_database(place, database_url):
    (place / "b").mkdir()
    with (serving(place, "--database-url", database_url) as (_, first),
          serving(place / "b", "--database-url", database_url) as (_, second)):
        with MetastoreClient(first["thrift"]) as client:
            client.create_database(client.types.Database(name="shared", locationUri=f"file:{place}/data/warehouse/shared.db"))
        with MetastoreClient(second["thrift"]) as client:
            assert "shared" in client.get_all_databases()
