"""A rename of a transactional table through the one address while either side is killed, and what must hold afterwards.

Whatever dies when: the table has one of its two names, at the upstream; its write ids are under that name, and go on
where they were; no note is left.
"""

import signal
import threading
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Protocol

import psycopg2
from sqlalchemy import make_url

from metastore.client import MetastoreClient
from metastore.client.answers import ANSWERS
from metastore.errors import MetastoreError
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.upstream.conftest import Writing
from tests.robustness.harness.processes import Postgres, Server, state_of, wait_for

ACID = T.ClientCapabilities([T.ClientCapability.INSERT_ONLY_TABLES])
UNHURRIED = {"hive.txn.timeout": "600s", "metastore.database.lock.timeout": "60s", "metastore.database.statement.timeout": "60s",
             "metastore.upstream.timeout": "2s", "hive.compactor.initiator.on": "false", "hive.compactor.worker.threads": "0",
             "hive.compactor.cleaner.on": "false"}
"""Nothing but the deaths ends anything; a change is taken back two seconds after whoever made it died."""


class Behind(Protocol):
    """The upstream: a process that is started again when it was killed."""

    uri: str

    def kill(self) -> None:
        """SIGKILL."""

    def back(self) -> None:
        """Wait until it answers again."""


def database(postgres: Postgres, name: str) -> str:
    """Create a database and return its URL."""
    with closing(psycopg2.connect(postgres.url)) as session:
        session.autocommit = True
        session.cursor().execute(f"CREATE DATABASE {name}")
    return make_url(postgres.url).set(database=name).render_as_string(hide_password=False)


class Front:
    """The server that has the transactions, supervised."""

    def __init__(self, directory: Path, postgres: Postgres, uri: str) -> None:
        self.database_url = database(postgres, "front")
        self.server = Server("a", directory, self.database_url, settings={**UNHURRIED, "metastore.upstream.uris": uri})

    def started(self, failpoints: str = "") -> None:
        """Anew, with these points armed."""
        self.server.next_failpoints = failpoints
        pid = self.server.process.pid
        self.server.signal(signal.SIGKILL)
        wait_for(lambda: self.server.process.pid != pid and self.server.ready, "the front to be up again")

    def ask(self, query: str) -> list:
        with closing(psycopg2.connect(self.database_url)) as session, session.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def stopped(self) -> bool:
        return state_of(self.server.process.pid) == "T"


class Renames:
    """``d.t1`` becomes ``d.t2``, and so on; one committed write id and one aborted each time."""

    def __init__(self, front: Front, behind: Behind, made: T.Table) -> None:
        self.front, self.behind = front, behind
        self.number, self.mark, self.aborted, self.said = 1, 0, [], ""
        made = deepcopy(made)
        made.tableName = self.name
        with MetastoreClient(front.server.uri, user="ann") as client:
            client.create_database(T.Database(name=made.dbName))
            client.create_table(made)
        self.db = made.dbName

    @property
    def name(self) -> str:
        return f"t{self.number}"

    def write(self) -> None:
        with MetastoreClient(self.front.server.uri, user="ann") as client:
            writing = Writing(client)
            _, self.mark = writing.write(self.name, self.db)
            txn, aborted = writing.write(self.name, self.db, commit=False)
            client.abort_txn(T.AbortTxnRequest(txn))
        self.mark += 1
        self.aborted.append(aborted)
        assert aborted == self.mark

    def begin(self) -> threading.Thread:
        """Rename it, on another thread, which gets whatever answer there is."""
        old, new = self.name, f"t{self.number + 1}"

        self.said = ""

        def rename() -> None:
            try:
                with MetastoreClient(self.front.server.uri, user="ann", timeout_s=120) as client:
                    changed = self._found(client, old)
                    changed.tableName = new
                    client.alter_table_with_environment_context(self.db, old, changed, T.EnvironmentContext(properties={}))
            except (MetastoreError, *ANSWERS) as error:
                self.said = str(error)

        thread = threading.Thread(target=rename)
        thread.start()
        return thread

    def judge(self) -> bool:
        """Whether it was renamed, once everybody is back and nothing is left to settle."""
        wait_for(lambda: self.front.server.ready, "the front to be up again")
        self.behind.back()
        wait_for(lambda: self.front.ask("SELECT count(*) FROM upstream_changes") == [(0,)], "the keeper to settle what was left")
        with MetastoreClient(self.behind.uri) as catalog:
            names = [name for name in catalog.get_all_tables(self.db) if name in {self.name, f"t{self.number + 1}"}]
        assert len(names) == 1, names
        was_renamed = names != [self.name]
        self.number += was_renamed
        with MetastoreClient(self.front.server.uri, user="ann") as client:
            writing = Writing(client)
            valid, expected = writing.valid(self.name, self.db), (self.mark, self.aborted)
            assert valid == expected, f"{self.db}.{self.name} has {valid}, not {expected}"
            other = f"t{self.number + (-1 if was_renamed else 1)}"
            assert self.front.ask(f"SELECT count(*) FROM txn_write_ids WHERE db = '{self.db}' AND \"table\" = '{other}'") == [(0,)]
            assert writing.write(self.name, self.db)[1] == self.mark + 1
        self.mark += 1
        return was_renamed

    def _found(self, client: MetastoreClient, name: str) -> T.Table:
        try:
            return client.get_table(self.db, name)
        except ANSWERS:
            return client.get_table_req(T.GetTableRequest(dbName=self.db, tblName=name, capabilities=ACID)).table


def front_dies(renames: Renames, point: str) -> bool:
    """At a point of its own. Whether the table was renamed."""
    renames.write()
    renames.front.started(f"{point}=kill")
    renames.begin().join()
    return renames.judge()


def upstream_dies_before_it_is_asked(renames: Renames) -> bool:
    """Kill the upstream before it is asked, when the note is there already. Return True if the table was renamed."""
    renames.write()
    renames.front.started("upstream.noted=stop")
    renames.front.server.paused = True
    thread = renames.begin()
    wait_for(renames.front.stopped, "the front to have noted the change")
    renames.behind.kill()
    renames.front.server.paused = False
    renames.front.server.signal(signal.SIGCONT)
    thread.join()
    return renames.judge()


def dies_meanwhile(renames: Renames, held: Callable[[], tuple[Callable[[], None], Callable[[], bool]]], *dead: Callable[[], None]) -> bool:
    """While the upstream is at it. ``held``: makes it wait in the middle; gives what lets it go on, and whether it waits."""
    renames.write()
    let_go, is_at_it = held()
    thread = renames.begin()
    wait_for(lambda: is_at_it() or not thread.is_alive(), "the upstream to be at it")
    assert thread.is_alive(), renames.said
    for kill in dead:
        kill()
    let_go()
    thread.join()
    return renames.judge()
