"""The embedded PostgreSQL: what survives, who may use it, what a second owner is told."""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psycopg2
import pytest

from metastore.db import postgres_user
from metastore.db.embedded import DataDirectoryInUseError, EmbeddedPostgres
from metastore.errors import InvalidInputError, UnavailableError
from tests.support.thrift_server import until

OWNER = """
import sys, threading
from pathlib import Path
from metastore.db.embedded import EmbeddedPostgres
postgres = EmbeddedPostgres(Path(sys.argv[1]))
postgres.start()
print(postgres.pid, postgres.tcp_url, flush=True)
threading.Event().wait()
"""


def query(url, text):
    with closing(psycopg2.connect(url)) as session:
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []


def gone(pid):
    """Whether a process has ended, as far as its parent or the kernel says."""
    for _ in range(6000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        threading.Event().wait(0.01)
    return False


def test_data_survives_a_restart_and_the_address_stays(data_dir):
    first = EmbeddedPostgres(data_dir, ends_with_us=True)
    first.start()
    address, pid = first.tcp_url, first.pid
    query(first.url, "CREATE TABLE kept AS SELECT 42 AS n")
    first.stop()
    assert gone(pid)

    second = EmbeddedPostgres(data_dir, ends_with_us=True)
    second.start()
    assert query(second.tcp_url, "SELECT n FROM kept") == [(42,)]
    assert second.tcp_url == address
    second.stop()


def test_a_child_that_was_forked_just_now_does_not_hold_the_data_directory(data_dir):
    """Until it runs its program, it has open what we have open: the file of the lock too."""
    first = EmbeddedPostgres(data_dir, ends_with_us=True)
    first.start()
    of_the_child = os.dup(first._lock_file.fileno())
    first.stop()

    second = EmbeddedPostgres(data_dir, ends_with_us=True)
    second.start()
    assert query(second.url, "SELECT 1") == [(1,)]
    second.stop()
    os.close(of_the_child)


def test_a_stop_in_the_middle_of_a_restart_leaves_no_postgres_and_starts_none(data_dir, monkeypatch):
    monkeypatch.setattr("metastore.db.embedded._WATCH_S", 0.005)
    postgres = EmbeddedPostgres(data_dir, ends_with_us=True)
    postgres.start()
    started, goes_on, made = threading.Event(), threading.Event(), []
    wait = postgres._wait_until_ready

    def wait_until_ready(process, deadline):
        made.append(process.pid)
        started.set()
        goes_on.wait()
        (data_dir / "postgres" / "postmaster.pid").unlink()  # as if it had not been written yet
        return wait(process, deadline)

    monkeypatch.setattr(postgres, "_wait_until_ready", wait_until_ready)
    os.kill(postgres.pid, signal.SIGKILL)
    started.wait()
    stopping = threading.Thread(target=postgres.stop)
    stopping.start()
    stopping.join(0.5)
    assert stopping.is_alive()  # until the restart has ended, whoever comes next must not have the directory
    goes_on.set()
    stopping.join()

    assert [Path(f"/proc/{pid}").exists() for pid in made] == [False]
    assert postgres.pid is None


def test_it_starts_beside_a_block_that_waits_for_it(data_dir):
    with EmbeddedPostgres(data_dir, ends_with_us=False).begun() as postgres:
        postgres.start()
        pid = postgres.pid
    try:
        assert query(postgres.url, "SELECT 1") == [(1,)]
    finally:
        postgres.stop()
    assert gone(pid)


def test_what_was_begun_beside_a_block_that_fails_is_stopped(data_dir):
    postgres = EmbeddedPostgres(data_dir)
    with pytest.raises(ZeroDivisionError), postgres.begun():
        until(lambda: postgres.pid)
        pid = postgres.pid
        raise ZeroDivisionError
    assert gone(pid)
    other = EmbeddedPostgres(data_dir, ends_with_us=True)
    other.start()  # the directory is free
    other.stop()


def test_a_start_beside_a_block_that_fails_is_told_to_who_waits_and_leaves_the_owner_alone(data_dir, own_postgres):
    with EmbeddedPostgres(data_dir).begun() as second, pytest.raises(DataDirectoryInUseError, match=f"process id {os.getpid()}"):
        second.start()
    with pytest.raises(ZeroDivisionError), EmbeddedPostgres(data_dir).begun():
        raise ZeroDivisionError
    assert query(own_postgres.url, "SELECT 1") == [(1,)]


def test_a_start_that_fails_leaves_no_postgres(data_dir, monkeypatch):
    postgres = EmbeddedPostgres(data_dir)
    pids = []

    def refused():
        pids.append(postgres.pid)
        raise UnavailableError("no room")

    monkeypatch.setattr(postgres, "_make_database", refused)
    with pytest.raises(UnavailableError, match="no room"):
        postgres.start()
    assert gone(pids[0])


def test_commits_wait_for_the_disk(own_postgres):
    settings = dict(query(own_postgres.url, "SELECT name, setting FROM pg_settings"))

    assert {name: settings[name] for name in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums")} == {
        "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "data_checksums": "on"}
    assert settings["listen_addresses"] == "127.0.0.1"


def test_tcp_wants_the_password(own_postgres):
    with pytest.raises(psycopg2.OperationalError, match="password|authentication"):
        psycopg2.connect(own_postgres.tcp_url.replace(own_postgres._password_file.read_text().strip(), "wrong"))
    assert own_postgres._password_file.stat().st_mode & 0o077 == 0
    assert own_postgres._socket_dir.stat().st_mode & 0o077 == 0


def test_a_second_owner_is_told_who_the_first_is(data_dir, own_postgres):
    with pytest.raises(DataDirectoryInUseError, match=f"process id {os.getpid()}.*--database-url"):
        EmbeddedPostgres(data_dir).start()

    assert query(own_postgres.url, "SELECT 1") == [(1,)]


def test_a_killed_owner_leaves_a_database_that_the_next_one_uses(data_dir):
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(data_dir)], stdout=subprocess.PIPE, text=True)
    pid, url = owner.stdout.readline().split()
    query(url, "CREATE TABLE kept AS SELECT 42 AS n")
    owner.send_signal(signal.SIGKILL)
    owner.wait(60)
    owner.stdout.close()

    next_owner = EmbeddedPostgres(data_dir)
    next_owner.start()
    assert str(next_owner.pid) == pid
    assert query(url, "SELECT n FROM kept") == [(42,)]
    next_owner.stop()
    assert gone(int(pid))


def test_a_creation_that_was_cut_off_starts_over(data_dir):
    half = data_dir / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    postgres = EmbeddedPostgres(data_dir, ends_with_us=True)
    postgres.start()

    assert query(postgres.url, "SELECT 1") == [(1,)]
    assert not half.exists()
    postgres.stop()


def test_a_long_path_still_has_a_socket(data_dir):
    deep = data_dir / ("d" * 120)
    postgres = EmbeddedPostgres(deep, ends_with_us=True)
    postgres.start()

    assert query(postgres.url, "SELECT 1") == [(1,)]
    assert postgres._socket_dir.stat().st_mode & 0o077 == 0
    postgres.stop()


def test_a_port_that_others_took_meanwhile_is_given_up(data_dir):
    import socket

    postgres = EmbeddedPostgres(data_dir, ends_with_us=True)
    postgres.start()
    port = postgres._port
    postgres.stop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        postgres = EmbeddedPostgres(data_dir, ends_with_us=True)
        postgres.start()
        assert postgres._port != port
        assert query(postgres.tcp_url, "SELECT 1") == [(1,)]
        postgres.stop()


@pytest.fixture
def deep(data_dir, monkeypatch):
    """Return a PostgreSQL whose path is too long for a socket; its socket will be in ``tmp`` of the data directory."""
    (data_dir / "tmp").mkdir()
    (data_dir / "tmp").chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(data_dir / "tmp"))
    return EmbeddedPostgres(data_dir / ("d" * 120), ends_with_us=True)


STRANGER = 54321


def made_by_a_stranger(path):
    path.mkdir(mode=0o700)
    os.chown(path, STRANGER, STRANGER)


def a_link(path):
    elsewhere = path.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    os.chown(elsewhere, STRANGER, STRANGER)
    path.symlink_to(elsewhere)


def open_to_all(path):
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what a stranger has made")
@pytest.mark.parametrize("prepare", [made_by_a_stranger, a_link, open_to_all])
def test_a_socket_directory_that_is_there_already_is_not_taken_over(deep, prepare):
    """Who can enter it is PostgreSQL's superuser."""
    place = deep._socket_dir
    prepare(place)
    before = [(path, path.lstat().st_mode, path.lstat().st_uid) for path in (place, *place.parent.iterdir())]

    with pytest.raises(UnavailableError, match=f"{place} was not made by this metastore.*TMPDIR.*shorter --data-dir"):
        deep.start()
    assert [(path, path.lstat().st_mode, path.lstat().st_uid) for path in (place, *place.parent.iterdir())] == before
    assert deep.pid is None


def test_a_temporary_directory_in_which_all_may_rename_is_no_place_for_it(deep):
    deep._socket_dir.parent.chmod(0o777)
    with pytest.raises(UnavailableError, match="lets everybody rename"):
        deep.start()


def test_the_socket_directory_is_ours_and_is_used_again(deep):
    for _ in range(2):
        deep.start()
        found = deep._socket_dir.lstat()
        assert (found.st_mode & 0o7777, found.st_uid) == (0o700, deep._user.uid)
        assert query(deep.url, "SELECT 1") == [(1,)]
        deep.stop()


@pytest.mark.skipif(os.geteuid() != 0 or not postgres_user._namespaces_work(), reason="needs root and user namespaces")
def test_directories_above_the_data_stay_as_they_are(data_dir):
    """PostgreSQL's own user may not pass; it runs in a user namespace instead of having doors opened."""
    data_dir.chmod(0o700)
    (data_dir / "between").mkdir(mode=0o700)
    postgres = EmbeddedPostgres(data_dir / "between" / "data", ends_with_us=True)
    for _ in range(2):
        postgres.start()
        assert query(postgres.url, "SELECT 1") == query(postgres.tcp_url, "SELECT 1") == [(1,)]
        postgres.stop()

    assert [path.stat().st_mode & 0o777 for path in (data_dir, data_dir / "between")] == [0o700, 0o700]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs somebody else")
def test_where_no_way_is_open_the_start_is_refused(data_dir, monkeypatch):
    monkeypatch.setattr(postgres_user, "_namespaces_work", lambda: False)
    data_dir.chmod(0o700)

    with pytest.raises(UnavailableError, match=f"may not pass the directory {data_dir}.*chmod o\\+x.*--database-url"):
        EmbeddedPostgres(data_dir / "data").start()
    assert data_dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("path", ["/proc/x", "/dev/null/x", "/dev/null"])
def test_a_data_directory_that_cannot_be(path):
    with pytest.raises(InvalidInputError, match=f"The data directory {path} cannot be used.*Choose another --data-dir"):
        EmbeddedPostgres(Path(path)).start()


def test_a_data_directory_behind_links_in_a_circle(data_dir):
    (data_dir / "circle").symlink_to("circle")
    with pytest.raises(InvalidInputError, match="cannot be reached|cannot be used"):
        EmbeddedPostgres(data_dir / "circle" / "data").start()


def test_who_cannot_look_does_not_say_that_it_died(data_dir, monkeypatch):
    """As without descriptors: the watcher goes on looking, and still starts what has died."""
    monkeypatch.setattr("metastore.db.embedded._WATCH_S", 0.005)
    looked, blind, died = [], threading.Event(), []
    monkeypatch.setattr("metastore.db.embedded.log", SimpleNamespace(
        error=lambda event, **_: died.append(event), warning=lambda event, **_: None, info=lambda event, **_: None))
    read = Path.read_text

    def read_text(path, *args, **kwargs):
        if blind.is_set() and path.name == "postmaster.pid":
            looked.append(path)
            raise OSError(errno.EMFILE, "Too many open files")
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_text)
    postgres = EmbeddedPostgres(data_dir, ends_with_us=True)
    postgres.start()
    pid = postgres.pid
    blind.set()
    while len(looked) < 5:
        threading.Event().wait(0.005)
    blind.clear()
    assert (postgres.pid, died) == (pid, [])

    os.kill(pid, signal.SIGKILL)
    while postgres.pid in {None, pid}:
        threading.Event().wait(0.01)
    assert died == ["postgres_died"]
    while True:
        try:
            assert query(postgres.url, "SELECT 1") == [(1,)]
            break
        except psycopg2.OperationalError:
            threading.Event().wait(0.01)
    monkeypatch.setattr("metastore.db.embedded._STOP_TIMEOUT_S", 0.1)  # it cannot see the end that it waits for
    blind.set()
    postgres.stop()
    blind.clear()
    until(lambda: postgres.pid is None)


def test_the_archive_may_have_any_name(tmp_path):
    """Its path stands in a command that PostgreSQL fills in and hands to the shell."""
    postgres = EmbeddedPostgres(tmp_path / "data", archive=tmp_path / """it's "kept" 100%p $(touch caught) `id`""")
    postgres._user = SimpleNamespace(own=lambda path: None)
    segment = tmp_path / "segment"
    segment.write_bytes(b"wal")

    postgres._make_archive()
    filled = {"%p": str(segment), "%f": "0001", "%%": "%"}
    command = re.sub("%.", lambda found: filled[found[0]], postgres.settings["archive_command"])
    subprocess.run(["sh", "-c", command], check=True, cwd=tmp_path)

    assert [(kept.name, kept.read_bytes()) for kept in postgres.archive.iterdir()] == [("0001", b"wal")]
    assert not (tmp_path / "caught").exists()
