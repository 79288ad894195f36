"""Servers under measurement, each with a database of its own on the same PostgreSQL."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.cpu import Meter
from benchmarks.load import Address, Measured, Scenario, Tally, drive, measure
from benchmarks.messages import void
from benchmarks.scenarios import COMMIT, Steps
from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes

BATCH = 1000
"""Most transactions that Hive opens in one call (hive.txn.max.open.batch)."""


@dataclass(frozen=True)
class Contestant:
    """A server, and where its data is."""

    address: Address
    pid: int
    database_url: str

    def client(self) -> MetastoreClient:
        return MetastoreClient(f"thrift://{self.address[0]}:{self.address[1]}")

    def run(self, scenario: Scenario, clients: int, seconds: float, warmup: float, processes: int = 1) -> Measured:
        return measure(self.address, scenario, connections=clients, seconds=seconds, warmup=warmup,
                       processes=processes, meter=Meter(self.pid, self.database_url))

    def hold_open(self, count: int) -> None:
        """Let so many transactions be open: those that are too many are committed, those that lack are opened."""
        with self.client() as client:
            found = [txn.id for txn in client.get_open_txns_info().open_txns if txn.state == ttypes.TxnState.OPEN]
            self.commit(found[count:])
            for begun in range(len(found), count, BATCH):
                client.open_txns(ttypes.OpenTxnRequest(min(BATCH, count - begun), "ann", "node1"))

    def commit(self, txn_ids: Sequence[int]) -> None:
        """Commit many transactions over several connections."""
        if txn_ids:
            clients = min(8, len(txn_ids))
            drive(self.address, partial(commits, txn_ids=txn_ids, clients=clients), clients, math.inf, 0)


def commits(index: int, tally: Tally, txn_ids: Sequence[int], clients: int) -> Steps:
    """One client's share of many commits."""
    for txn_id in txn_ids[index::clients]:
        void("commit_txn", (yield struct.pack(">q", txn_id).join(COMMIT)))
        tally.done()
