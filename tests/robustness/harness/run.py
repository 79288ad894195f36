"""One history: a seed in, what happened out. Servers and PostgreSQL stay up from one history to the next.

Each history has a Hive database of its own, so that histories do not see each other's keys, locks and write ids.
"""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Self

import psycopg2

from metastore.client import MetastoreClient
from metastore.client.answers import ANSWERS
from metastore.errors import MetastoreError
from metastore.thrift_gen.hive_metastore import ttypes
from tests.robustness.checker.check import check
from tests.robustness.checker.history import Anomaly, Answer, Append, Base, Call, History, Read, Unreadable, View
from tests.robustness.harness.deltas import Deltas
from tests.robustness.harness.faults import Faults, Planned
from tests.robustness.harness.processes import (
    TXN_TIMEOUT_S,
    ClientProcess,
    Compactor,
    Postgres,
    RunFailedError,
    Server,
    remove,
    scratch,
    wait_for,
)
from tests.robustness.harness.proxy import Proxy
from tests.robustness.harness.recording import Log, RecordingClient
from tests.robustness.harness.secured import Secured
from tests.robustness.harness.workload import HOST, KEYS, Worker

PROCESSES, THREADS = 3, 4


@dataclass
class Outcome:
    """A history and the verdict on it."""

    seed: int
    faults: list[Planned]
    history: History
    anomalies: list[Anomaly]
    where: Path
    counts: Counter = field(default_factory=Counter)

    def __str__(self) -> str:
        faults = ", ".join(f"{fault.name} at {fault.at}" for fault in self.faults) or "none"
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        return f"seed {self.seed}: {counts}; faults: {faults}"


class Cluster:
    """PostgreSQL, two servers (one of them reaches PostgreSQL through a proxy), and client processes."""

    def __init__(self, planted: str = "", *, keep: bool = True, postgres: Callable[[Path], Postgres] = Postgres, chart: bool = False) -> None:
        """``keep``: leave what a failed history wrote, for people. ``postgres``: makes one in a directory.

        ``chart``: as Kubernetes has it: servers do not compact, two workers do, and nobody speaks without certificates.
        """
        self.directory, self._keep = scratch(), keep
        self.postgres = postgres(self.directory / "pg")
        self._rng = Random("proxies")
        self.proxies = [Proxy(self.postgres.port, self._rng)]
        direct = self.postgres.url
        proxied = direct.replace(f":{self.postgres.port}/", f":{self.proxies[0].port}/")
        secured = Secured(self.directory) if chart else None
        more = {**secured.server, "hive.compactor.worker.threads": "0"} if secured else {}
        self.tls = secured.client if secured else None
        self.servers = [Server("a", self.directory, direct, planted, more), Server("b", self.directory, proxied, planted, more)]
        self.compactors: list[Compactor] = []
        self.proxies += [Proxy(server.port, self._rng) for server in self.servers]
        self.clients = [ClientProcess(number, self.directory, secured.environment if secured else {}) for number in range(PROCESSES)]
        try:
            wait_for(lambda: all(server.has_started() for server in self.servers), "the servers to start")
            if secured:
                uri = ",".join(server.uri for server in self.servers)
                for name, url in (("worker-a", direct), ("worker-b", proxied)):
                    self.compactors.append(Compactor(name, self.directory, url, uri, secured.server))
                wait_for(lambda: all(one.has_started() for one in self.compactors), "the workers to start")
        except RunFailedError:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for part in (*self.clients, *self.compactors, *self.servers):
            part.stop()
        for proxy in self.proxies:
            proxy.close()
        self.postgres.embedded.stop()
        if not (self._keep and any(self.directory.glob("failed-*"))):
            remove(self.directory)

    def timeouts(self) -> Counter[str]:
        """How many calls PostgreSQL ended by a time-out, by the servers' logs."""
        logs = "".join((self.directory / f"{server.name}.log").read_text(errors="replace") for server in self.servers)
        return Counter({f"{kind} time-outs": logs.count(f"due to {kind} timeout") for kind in ("lock", "statement")})

    def run(self, seed: int, actions: int, *, faults: bool = True) -> Outcome:
        """One history."""
        where = self.directory / f"history-{seed}"
        where.mkdir()
        self._rng.seed(f"{seed}/proxies")
        self.postgres.killed_at.clear()
        db = f"h{seed}"
        self._make_tables(db, where / "deltas")
        plan = Faults(self.postgres, self.servers, self.proxies, self.clients, seed, self.compactors)
        if not faults:
            plan.plan.clear()
        direct, cut = [server.uri for server in self.servers], [f"thrift://127.0.0.1:{one.port}" for one in self.proxies[1:]]
        ticks = where / "ticks"
        job = {"seed": seed, "db": db, "deltas": str(where / "deltas"), "actions": actions, "threads": THREADS,
               "ticks": str(ticks)}
        for client in self.clients:
            client.begin({**job, "uris": cut if client.number == 0 else direct, "log": str(where / f"{client.number}.log")})
        workers = ThreadPoolExecutor(len(self.clients))
        ends = [workers.submit(client.finish) for client in self.clients]

        def progress() -> float:
            if all(end.done() for end in ends):
                return 1.0
            return ticks.stat().st_size / (actions * THREADS * PROCESSES) if ticks.exists() else 0.0

        plan.run(progress)
        workers.shutdown()
        plan.heal()
        for end in ends:
            end.result()
        states = self._settle(db, where)
        self._drop_tables(db)
        history = assembled(sorted(where.glob("*.log")), states)
        history.crashes = list(self.postgres.killed_at)
        outcome = Outcome(seed, plan.done, history, check(history), where)
        outcome.counts.update(calls=len(history.calls), committed=len(history.committed & {one.txn for one in history.appends}),
                              reads=len(history.reads), bases=len(history.bases), unknown=sum(one.answer is Answer.UNKNOWN for one in history.calls))
        if outcome.anomalies:
            where = outcome.where = where.rename(self.directory / f"failed-{seed}")
            (where / "anomalies.txt").write_text("\n".join(map(str, [outcome, *outcome.anomalies])) + "\n")
        else:
            remove(where)
        return outcome

    def _client(self, log: Log) -> RecordingClient:
        return RecordingClient(",".join(server.uri for server in self.servers), log, user="settling", timeout_s=30, tls=self.tls)

    def _make_tables(self, db: str, deltas: Path) -> None:
        """Create the tables of the keys over the directories where their elements will be."""
        with MetastoreClient(self.servers[0].uri, tls=self.tls) as client:
            client.create_database(ttypes.Database(name=db, locationUri=deltas.as_uri()))
            for table in sorted({key.partition("/")[0] for key in KEYS}):
                partitions = [key.partition("/")[2] for key in KEYS if key.startswith(f"{table}/")]
                serde = ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde")
                place = ttypes.StorageDescriptor(
                    cols=[ttypes.FieldSchema("element", "string")], location=f"{deltas.as_uri()}/{table}", serdeInfo=serde,
                    inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                    outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat")
                client.create_table(ttypes.Table(
                    dbName=db, tableName=table, sd=place, parameters={"transactional": "true"}, tableType="MANAGED_TABLE",
                    partitionKeys=[ttypes.FieldSchema("p", "string")] if partitions else []))
                if partitions:
                    client.add_partitions([ttypes.Partition(
                        dbName=db, tableName=table, values=[name.partition("=")[2]],
                        sd=moved(place, f"{place.location}/{name}")) for name in partitions])

    def _drop_tables(self, db: str) -> None:
        """Their loops have nothing more to do with them; the files stay."""
        def dropped() -> bool:
            try:
                with MetastoreClient(self.servers[0].uri, tls=self.tls) as client:
                    client.drop_database(db, deleteData=False, cascade=True)
            except ttypes.NoSuchObjectException:
                return True
            except (MetastoreError, *ANSWERS):   # a compaction has its lock
                return False
            return True

        wait_for(dropped, f"the database {db} to be dropped")

    def _settle(self, db: str, where: Path) -> dict[int, str]:
        """End what is open, read every key once more, and ask the tables what became of each transaction."""
        log = Log(where / "settling.log")
        with self._client(log) as client:
            def none_open() -> bool:
                try:
                    rows = client.get_open_txns_info().open_txns
                    left = [row.id for row in rows if row.state == ttypes.TxnState.OPEN and row.hostname == HOST]
                    if left:
                        client.abort_txns(ttypes.AbortTxnsRequest(txn_ids=left))
                except (MetastoreError, *ANSWERS):
                    return False
                return not left

            wait_for(none_open, "every transaction to end")
            worker = Worker(client, log, Deltas(where / "deltas"), db, "settling", Random(0))
            unknown = {call.facts["txn"] for call in assembled(sorted(where.glob("*.log")), {}).called(
                "commit_txn", answer=Answer.UNKNOWN)}

            def all_read() -> bool:
                """Return True if everything can be read; a connection that PostgreSQL's last crash left behind may still break."""
                try:
                    txn = worker.manager.open()
                    worker._view(txn)
                    worker._read(txn, KEYS)
                    txn.commit()
                    for txn_id in unknown:
                        client.metastore_txn_outcome(txn_id)
                except (MetastoreError, *ANSWERS):
                    return False
                return True

            wait_for(all_read, "every key to be read")
        log.close()
        connection = psycopg2.connect(self.postgres.url)
        try:
            cursor = connection.cursor()
            cursor.execute("SELECT id, state FROM txns")
            return dict(cursor.fetchall())
        finally:
            connection.close()


def moved(place: ttypes.StorageDescriptor, location: str) -> ttypes.StorageDescriptor:
    """Return a copy of the storage descriptor with another location."""
    elsewhere = copy(place)
    elsewhere.location = location
    return elsewhere


def assembled(logs: list[Path], states: dict[int, str]) -> History:
    """Build the history from the log lines of several processes."""
    history = History(timeout=TXN_TIMEOUT_S, states=states)
    calls: dict[str, Call] = {}
    for path in logs:
        for text in path.read_text().splitlines():
            line = json.loads(text)
            if "call" in line:
                end = inf if line["t1"] is None else line["t1"]
                calls[line["n"]] = Call(line["call"], line["t0"], end, Answer(line["answer"]), line["facts"])
            elif "view" in line:
                history.views.append(View(line["view"], line["t0"], line["t1"], line["mark"], frozenset(line["exceptions"])))
            elif "base" in line:
                history.bases.append(Base(line["base"], line["write_id"], line["txn"], line["at"]))
            elif "unreadable" in line:
                history.unreadable.append(Unreadable(line["unreadable"], line["key"], line["error"]))
            elif "read" in line:
                history.reads.append(Read(line["read"], line["key"], tuple(line["elements"])))
            else:
                history.appends.append(
                    Append(line["append"], line["key"], line["element"], line["write_id"], line["changes"]))
    history.calls = list(calls.values())
    return history
