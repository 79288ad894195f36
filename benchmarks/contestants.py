"""Servers under measurement, each with a database of its own on one PostgreSQL, and the states they are put into."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.cpu import Meter
from benchmarks.load import Address, Measured, Scenario, Steps, Tally, drive, measure
from benchmarks.messages import void
from benchmarks.peers import run_sql
from benchmarks.scenarios import COMMIT, DB, FINISHED_TABLE, PARTITION
from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes

BATCH = 1000
"""The most transactions that Hive opens in one call (hive.txn.max.open.batch)."""
MANY_OPEN = {"hive.txn.timeout": "1d", "hive.max.open.txns": "1000000"}
"""The settings with which a hundred thousand silent transactions stay open."""


@dataclass(frozen=True)
class Contestant:
    """A server, ours or another, and the place of its data."""

    address: Address
    pid: int
    database_url: str

    def client(self) -> MetastoreClient:
        """Return a new client of the server."""
        return MetastoreClient(f"thrift://{self.address[0]}:{self.address[1]}")

    def run(self, scenario: Scenario, clients: int, seconds: float, warmup: float, processes: int = 1) -> Measured:
        """Measure a scenario with ``clients`` clients."""
        return measure(
            self.address,
            scenario,
            connections=clients,
            seconds=seconds,
            warmup=warmup,
            processes=processes,
            meter=Meter(self.pid, self.database_url),
        )

    def hold_open(self, count: int) -> None:
        """Keep exactly so many transactions open: commit those that are too many, open those that are missing."""
        with self.client() as client:
            open_ids = [txn.id for txn in client.get_open_txns_info().open_txns if txn.state == ttypes.TxnState.OPEN]
            self.end(open_ids[count:])
            for begun in range(len(open_ids), count, BATCH):
                client.open_txns(ttypes.OpenTxnRequest(min(BATCH, count - begun), "ann", "node1"))

    def end(self, txn_ids: Sequence[int]) -> None:
        """Commit transactions over several connections."""
        if txn_ids:
            clients = min(32, len(txn_ids))
            drive(self.address, partial(commits, txn_ids=txn_ids, clients=clients), clients, math.inf, 0)

    def finish(self, count: int) -> None:
        """Add commits of one table by so many writers, all since the oldest open transaction began.

        The rows are those that the server itself would have left. SQL writes them, since calls would take too long.
        """
        with self.client() as client:
            mark = client.get_open_txns().txn_high_water_mark
            client.seed_txn_id(ttypes.SeedTxnIdRequest(mark + count + 1))
        self.fill(f"""
            INSERT INTO txns (id, state, "user", host, started_at, last_heartbeat_at, ended_at)
            SELECT {mark} + n, 'committed', 'ann', 'node1', metastore_now(), metastore_now(), metastore_now()
            FROM generate_series(1, {count}) AS n;
            INSERT INTO next_write_ids (catalog, db, "table", next_write_id)
            VALUES ('hive', '{DB}', '{FINISHED_TABLE}', {count} + 1);
            INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
            SELECT {mark} + n, 'hive', '{DB}', '{FINISHED_TABLE}', n FROM generate_series(1, {count}) AS n;
            INSERT INTO completed_txn_components (
                txn_id, catalog, db, "table", partition, write_id, update_delete, at)
            SELECT {mark} + n, 'hive', '{DB}', '{FINISHED_TABLE}', '{PARTITION}', n, false, metastore_now()
            FROM generate_series(1, {count}) AS n""")

    def fill(self, sql: str) -> None:
        """Run SQL on the server's data, followed by the work that autovacuum would do within a minute."""
        run_sql(self.database_url, sql)
        run_sql(self.database_url, "VACUUM (ANALYZE)")


class Hive23(Contestant):
    """Hive's metastore 2.3.10."""

    def end(self, txn_ids: Sequence[int]) -> None:
        """End the transactions: by calls if they are few, else in the database."""
        if len(txn_ids) <= BATCH:
            super().end(txn_ids)
        else:  # calls would take minutes
            run_sql(self.database_url, "TRUNCATE txns CASCADE")

    def finish(self, count: int) -> None:
        """Insert ``count`` finished transactions into the database."""
        self.fill(f"""
            INSERT INTO completed_txn_components (ctc_txnid, ctc_database, ctc_table, ctc_partition)
            SELECT ntxn_next + n - 1, '{DB}', '{FINISHED_TABLE}', '{PARTITION}'
            FROM next_txn_id, generate_series(1, {count}) AS n;
            UPDATE next_txn_id SET ntxn_next = ntxn_next + {count}""")


class Hive42(Contestant):
    """Hive's metastore 4.2.0."""

    def end(self, txn_ids: Sequence[int]) -> None:
        """End the transactions: by calls if they are few, else in the database."""
        if len(txn_ids) <= BATCH:
            super().end(txn_ids)
        else:
            run_sql(self.database_url, """UPDATE "TXNS" SET "TXN_STATE" = 'c' WHERE "TXN_STATE" = 'o'""")

    def finish(self, count: int) -> None:
        """Insert ``count`` finished transactions into the database."""
        with self.client() as client:
            mark = client.get_open_txns().txn_high_water_mark
        self.fill(f"""
            INSERT INTO "TXN_TO_WRITE_ID" ("T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID")
            SELECT {mark} + n, '{DB}', '{FINISHED_TABLE}', n FROM generate_series(1, {count}) AS n;
            INSERT INTO "NEXT_WRITE_ID" ("NWI_DATABASE", "NWI_TABLE", "NWI_NEXT")
            VALUES ('{DB}', '{FINISHED_TABLE}', {count} + 1);
            INSERT INTO "COMPLETED_TXN_COMPONENTS" (
                "CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID", "CTC_UPDATE_DELETE")
            SELECT {mark} + n, '{DB}', '{FINISHED_TABLE}', '{PARTITION}', n, 'N' FROM generate_series(1, {count}) AS n;
            SELECT setval(pg_get_serial_sequence('"TXNS"', 'TXN_ID'), {mark} + {count})""")
        with self.client() as client:  # the mark is that of the last row of TXNS
            [last] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "node1")).txn_ids
            client.commit_txn(ttypes.CommitTxnRequest(last))
            if last <= mark + count:
                raise RuntimeError("the transactions that are said to be finished lie in the future")


def commits(index: int, tally: Tally, txn_ids: Sequence[int], clients: int) -> Steps:
    """Commit one client's share of many transactions."""
    for txn_id in txn_ids[index::clients]:
        void("commit_txn", (yield struct.pack(">q", txn_id).join(COMMIT)))
        tally.done()
