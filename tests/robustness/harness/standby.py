"""A PostgreSQL and a streaming standby of it, which can be promoted."""

import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg2

from metastore.db.embedded import _end_with_parent, programs
from tests.robustness.harness.processes import Postgres, port_of_our_own, state_of, wait_for


class Pair(Postgres):
    """``url`` leads to whichever of the two can be written to. ``synchronous``: commits wait for the standby."""

    def __init__(self, directory: Path, *, synchronous: bool) -> None:
        super().__init__(directory)
        self._standby = directory / "standby"
        user = self.embedded._user
        self.standby_port = port_of_our_own()
        subprocess.run([programs() / "pg_basebackup", "-h", self.embedded._socket_dir, "-p", str(self.port), "-U", "metastore", "-R",
                        "-X", "stream", "-c", "fast", "-D", self._standby], check=True, capture_output=True)
        for path in (self._standby, *self._standby.rglob("*")):
            user.own(path)
        self._standby.chmod(0o700)
        sockets = Path("/tmp") / f"standby-{self.standby_port}"
        sockets.mkdir(mode=0o700)
        user.own(sockets)
        self._sockets = sockets
        arguments = {"port": self.standby_port, "listen_addresses": "127.0.0.1", "unix_socket_directories": sockets, "fsync": "off",
                     "max_connections": 80}
        with (directory / "standby.log").open("ab") as log:
            self.process = subprocess.Popen(
                [programs() / "postgres", "-D", self._standby, *(word for name, value in arguments.items() for word in ("-c", f"{name}={value}"))],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True, **user.process(_end_with_parent))
        wait_for(lambda: self.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == [(1,)], "the standby to follow")
        if synchronous:
            self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.ask("SELECT pg_reload_conf()")
            wait_for(lambda: self.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == [(1,)], "it to be synchronous")
        self.url = self.url.replace(f"127.0.0.1:{self.port}/", f"127.0.0.1:{self.port},127.0.0.1:{self.standby_port}/") + "?target_session_attrs=read-write"

    def ask(self, query: str, *, standby: bool = False) -> list:
        host, port = (self._sockets, self.standby_port) if standby else (self.embedded._socket_dir, self.port)
        with closing(psycopg2.connect(host=str(host), port=port, user="metastore", dbname="metastore")) as session:
            session.autocommit = True
            with session.cursor() as cursor:
                cursor.execute(query)
                return cursor.fetchall() if cursor.description else []

    def fail_over(self) -> None:
        """Kill the primary for good, and promote the standby."""
        self.embedded._stopping.set()   # nobody starts it again
        primary = self.embedded.pid
        self.kill()
        wait_for(lambda: state_of(primary) in {"", "Z"}, "the primary to be dead")
        assert self.ask("SELECT pg_promote(true, 120)", standby=True) == [(True,)]

    def stop(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGINT)
            self.process.wait()
        for left in self._sockets.iterdir():
            left.unlink()
        self._sockets.rmdir()
        self.embedded.stop()
