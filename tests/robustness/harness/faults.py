"""What goes wrong during a run: which faults and when follows from the seed.

A fault that lasts (a paused process, a held row lock) is undone on a thread of its own, so that faults overlap.
"""

import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import NamedTuple

import psycopg2

from tests.robustness.harness.processes import (
    TXN_TIMEOUT_S,
    ClientProcess,
    Compactor,
    Postgres,
    Process,
    Server,
    wait_for,
)
from tests.robustness.harness.proxy import Proxy

_ROWS = ("SELECT FROM txn_counter FOR UPDATE", "SELECT FROM txns WHERE state = 'open' ORDER BY id FOR UPDATE",
         "SELECT FROM next_write_ids ORDER BY 1, 2, 3 FOR UPDATE", "SELECT FROM locks ORDER BY ext_id, int_id FOR UPDATE")
_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'metastore' AND pid <> pg_backend_pid()"


class Planned(NamedTuple):
    """A fault and its moment: which part of the work has been done by then."""

    at: float
    name: str


class Faults:
    """Does harm to the processes of a run, and puts everything right at the end."""

    def __init__(self, postgres: Postgres, servers: Sequence[Server], proxies: Sequence[Proxy],
                 clients: Sequence[ClientProcess], seed: int, compactors: Sequence[Compactor] = ()) -> None:
        self.postgres, self.servers, self.proxies, self.clients, self.compactors = postgres, servers, proxies, clients, compactors
        self._kinds = {**KINDS, **WORKER_KINDS} if compactors else KINDS
        self._rng = Random(f"{seed}/faults")
        self._lasting: list[threading.Thread] = []
        self._healing = threading.Event()
        names = self._rng.choices(list(self._kinds), [weight for weight, _ in self._kinds.values()], k=self._rng.choice((1, 2, 2, 3, 4)))
        self.plan = sorted(Planned(round(self._rng.uniform(0.05, 0.9), 2), name) for name in names)
        self.done: list[Planned] = []

    def run(self, progress: Callable[[], float]) -> None:
        """Carry out the plan, as far as the work gets; ``progress`` goes from 0 to 1."""
        pause = threading.Event()
        for planned in self.plan:
            while progress() < planned.at:
                pause.wait(0.02)
            with suppress(psycopg2.Error, ProcessLookupError):
                self._kinds[planned.name][1](self)
                self.done.append(planned)

    def heal(self) -> None:
        """No more harm; everything that died is up again; nothing is armed."""
        self._healing.set()
        for thread in self._lasting:
            thread.join()
        for proxy in self.proxies:
            proxy.harm = 0.0
        for process in (*self.servers, *self.compactors, *self.clients):
            process.signal(signal.SIGCONT)
        for server in (*self.servers, *self.compactors):
            server.paused = False
            server.next_failpoints = ""
            if server.failpoints:
                server.signal(signal.SIGKILL)
                server.process.wait()
        wait_for(lambda: all(one.ready for one in (*self.servers, *self.compactors)), "servers and workers to be up again")
        wait_for(self._postgres_answers, "PostgreSQL to be up again")

    def _postgres_answers(self) -> bool:
        try:
            psycopg2.connect(self.postgres.url, connect_timeout=5).close()
        except psycopg2.Error:
            return False
        return True

    def _for_a_while(self, seconds: float, undo: Callable[[], None]) -> None:
        def later() -> None:
            self._healing.wait(seconds)
            undo()

        thread = threading.Thread(target=later)
        thread.start()
        self._lasting.append(thread)

    # ------------------------------------------------------------------------------------------- the kinds
    def kill_server(self) -> None:
        self._rng.choice(self.servers).signal(signal.SIGKILL)

    def kill_both_servers(self) -> None:
        for server in self.servers:
            server.signal(signal.SIGKILL)

    def kill_postgres(self) -> None:
        self.postgres.kill()

    def kill_session(self) -> None:
        """SIGKILL to a back end: PostgreSQL recovers from its log."""
        with psycopg2.connect(self.postgres.url) as connection, connection.cursor() as cursor:
            cursor.execute(f"{_SESSIONS} ORDER BY random() LIMIT 1")
            for (pid,) in cursor.fetchall():
                self.postgres.kill_backend(pid)
        connection.close()

    def terminate_sessions(self) -> None:
        self._sql(f"SELECT pg_terminate_backend(pid) FROM ({_SESSIONS}) AS s")

    def cancel_statements(self) -> None:
        self._sql(f"SELECT pg_cancel_backend(pid) FROM ({_SESSIONS}) AS s")

    def _sql(self, text: str) -> None:
        connection = psycopg2.connect(self.postgres.url)
        try:
            connection.autocommit = True
            connection.cursor().execute(text)
        finally:
            connection.close()

    def hold_rows(self) -> None:
        """Another session holds rows, sometimes for longer than lock_timeout of one server, statement_timeout of the other."""
        connection = psycopg2.connect(self.postgres.url)
        connection.cursor().execute("SET lock_timeout = '1s'; " + self._rng.choice(_ROWS))

        def let_go() -> None:
            with suppress(psycopg2.Error):
                connection.close()

        self._for_a_while(self._rng.choice((0.5, 1.5)), let_go)

    def cut_connections(self) -> None:
        """Let proxies cut requests and answers: of clients, and of one server's sessions in PostgreSQL."""
        for proxy in self._rng.sample(self.proxies, self._rng.choice((1, len(self.proxies)))):
            proxy.harm = self._rng.choice((0.02, 0.1))

            def stop(proxy: Proxy = proxy) -> None:
                proxy.harm = 0.0

            self._for_a_while(self._rng.choice((0.5, 1.5)), stop)

    def cut_commits(self) -> None:
        """Cut a server off PostgreSQL while commits run there: they wait for a row, and are done when they get it."""
        connection = psycopg2.connect(self.postgres.url)
        connection.cursor().execute(f"SET lock_timeout = '1s'; {_ROWS[0]}")
        waiting = threading.Event()

        def let_go() -> None:
            with suppress(psycopg2.Error):
                connection.close()
            waiting.wait(0.2)  # a commit whose connection ends before it has got the row is undone
            self.proxies[0].forget()

        waiting.wait(0.3)
        self.proxies[0].part()
        self._for_a_while(self._rng.choice((0.2, 0.5)), let_go)

    def pause_server(self) -> None:
        self._pause(self._rng.choice(self.servers))

    def _pause(self, process: Process) -> None:
        process.paused = True
        process.signal(signal.SIGSTOP)

        def go_on() -> None:
            process.signal(signal.SIGCONT)
            process.paused = False

        self._for_a_while(self._rng.choice((0.3, 1.0, TXN_TIMEOUT_S + 1.5)), go_on)

    def pause_client(self) -> None:
        """Past its time-out: the reaper takes its transactions and locks while it knows nothing."""
        client = self._rng.choice(self.clients)
        client.signal(signal.SIGSTOP)
        self._for_a_while(TXN_TIMEOUT_S + self._rng.choice((0.5, 1.5)), lambda: client.signal(signal.SIGCONT))

    def kill_client(self) -> None:
        self._rng.choice(self.clients).signal(signal.SIGKILL)

    def failpoint(self) -> None:
        """Restart a server with a point armed at which it crashes, freezes or fails."""
        server = self._rng.choice(self.servers)
        point = self._rng.choice(("pg.before_commit", "pg.after_commit"))
        action = self._rng.choice(("kill", "kill", "stop", "error"))
        server.next_failpoints = f"{point}={action}@{self._rng.randrange(40, 400)}"
        server.signal(signal.SIGKILL)


    def kill_worker(self) -> None:
        self._rng.choice(self.compactors).signal(signal.SIGKILL)

    def kill_all_but_postgres(self) -> None:
        for process in (*self.servers, *self.compactors):
            process.signal(signal.SIGKILL)

    def pause_worker(self) -> None:
        """Past its lease: another one begins its compaction anew, and then it goes on."""
        self._pause(self._rng.choice(self.compactors))

    def worker_failpoint(self) -> None:
        """Restart a worker with a point armed at which it dies with a job's result in its hands, before or after the commit."""
        worker = self._rng.choice(self.compactors)
        worker.next_failpoints = f"{self._rng.choice(('worker.before_commit', 'worker.after_commit'))}=kill@{self._rng.randrange(1, 4)}"
        worker.signal(signal.SIGKILL)


KINDS: dict[str, tuple[int, Callable[[Faults], None]]] = {
    "kill server": (4, Faults.kill_server), "kill both servers": (1, Faults.kill_both_servers),
    "kill postgres": (4, Faults.kill_postgres), "kill session": (3, Faults.kill_session),
    "terminate sessions": (3, Faults.terminate_sessions), "cancel statements": (2, Faults.cancel_statements),
    "hold rows": (3, Faults.hold_rows), "cut connections": (5, Faults.cut_connections),
    "cut commits": (5, Faults.cut_commits), "pause server": (4, Faults.pause_server), "pause client": (4, Faults.pause_client),
    "kill client": (2, Faults.kill_client), "failpoint": (4, Faults.failpoint)}
WORKER_KINDS: dict[str, tuple[int, Callable[[Faults], None]]] = {
    "kill worker": (8, Faults.kill_worker), "kill all but postgres": (2, Faults.kill_all_but_postgres),
    "pause worker": (5, Faults.pause_worker), "worker failpoint": (8, Faults.worker_failpoint)}
