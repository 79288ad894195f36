"""The embedded PostgreSQL: what survives, who may use it, what a second owner is told."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from metastore.db.embedded import DataDirectoryInUseError, EmbeddedPostgres

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
    for _ in range(1000):
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
    owner.wait(10)
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
