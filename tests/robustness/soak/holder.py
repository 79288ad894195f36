"""Snapshots of the tables that change most, each read twice: at once, and when what it shows was rewritten.

Between the two a major compaction is asked for, of just these files, and the Cleaner has had its turn. Without Spark, so
that several are held at a time: this is what finds a Cleaner that does not wait for readers.
"""

import threading
from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import Any

from thrift.Thrift import TException

from metastore.acid_tables.arrow_rows import ArrowRows
from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient, TxnManager
from metastore.client.heartbeat import LostError
from metastore.client.partitions import partition_places
from metastore.client.scans import snapshot_directories
from metastore.client.txn_manager import Transaction
from metastore.errors import MetastoreError, NoSuchTxnError, TxnAbortedError
from metastore.files import Files
from metastore.ids import table_name
from metastore.txns.core.rules import TxnType
from tests.robustness.soak.abandoning import abandon
from tests.robustness.soak.role import Role, pause
from tests.robustness.soak.tables import twice, wrong_accounts

AT_ONCE, WORTH = 3, 2
TABLES = ("facts", "flat", "accounts")
_FAILURES = (MetastoreError, TException, OSError)


class Snapshot:
    """What a reader that came now may see of a table, for as long as its transaction is open. It holds no lock."""

    def __init__(self, client: DomainClient, txn: Transaction, table: str) -> None:
        self.client, self.txn, self.files = client, txn, Files()
        self.table = AcidTable.of(table_name("soak", table), client.get_table("soak", table))
        self.places = partition_places(client, self.table, None)
        [self.write_ids] = txn.valid_write_ids([f"soak.{table}"]).values()
        self.txns = txn.valid_txns()

    def planned(self) -> ArrowRows:
        """Which files it reads, by what the directories hold now."""
        directories = snapshot_directories(self.client, self.files, self.table, self.places, self.write_ids, self.txns)
        names = [column.name.lower() for column in (*self.table.columns, *self.table.partition_keys)]
        return ArrowRows(self.files, self.table, directories, self.write_ids, names)


def rows(plan: ArrowRows) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for batch in plan.batches() for row in batch.to_pylist()), key=repr)


class Holder(Role):
    """Several threads that each hold one snapshot after the other; one that looks; and one whose writes are aborted."""

    def run(self) -> None:
        tasks = [self._hold_on] * AT_ONCE + [self._look, self._abandon]
        threads = [threading.Thread(target=task, args=(Random(self.random.random()),)) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _look(self, random: Random) -> None:
        """Look at a table about each second, as any reader does: threads that hold a snapshot wait most of the time."""
        while not self.has_to_stop():
            pause(random.uniform(0.5, 1.5))
            self._look_at(random.choice(TABLES))

    def _look_at(self, table: str, why: str = "looks") -> None:
        try:
            with closing(DomainClient(self.uris, user="soak-holder")) as client:
                txn = TxnManager(client).open(kind=TxnType.READ_ONLY, agent="soak looker")
                try:
                    wrong = wrong_ids(table, rows(Snapshot(client, txn, table).planned()))
                    self._say(wrong if wrong and self._is_open(txn) else [], f"a look at {table} in transaction {txn.id}")
                finally:
                    txn.abort_quietly()
            self.count(why)
        except _FAILURES as error:
            self.count("looks that failed")
            print(f"a look at {table}: {error!r:.300}", flush=True)

    def _say(self, wrong: list[str], what: str) -> None:
        for text in wrong:
            self.anomaly(f"{what}: {text}")

    def _abandon(self, random: Random) -> None:
        while not self.has_to_stop():
            pause(random.uniform(2, 10))
            try:
                self.count(abandon(self.uris, random))
            except _FAILURES as error:
                print(f"abandoning: {error!r:.300}", flush=True)
                self.count("servers away")

    def _hold_on(self, random: Random) -> None:
        while not self.has_to_stop():
            table = random.choice(TABLES)
            try:
                with closing(DomainClient(self.uris, user="soak-holder")) as client:
                    txn = TxnManager(client).open(kind=TxnType.READ_ONLY, agent="soak holder")
                    try:
                        self.hold(Snapshot(client, txn, table), table)
                    finally:
                        txn.abort_quietly()
            except _FAILURES as error:
                print(f"{table}: {error!r:.300}", flush=True)
                self.count("servers away")
            pause(random.uniform(0, 2))

    def hold(self, snapshot: Snapshot, table: str) -> None:
        """Read, let it be compacted and cleaned, and read again: by the plan from before, and by a new one.

        While the Cleaner waits for us, the base and the deltas below it are both there: whoever comes then must read one.
        """
        plan = snapshot.planned()
        most = max(plan.directories, key=lambda directory: len(directory.state.deltas), default=None)
        if most is None or len(most.state.deltas) < WORTH:
            return
        before = rows(plan)
        wrong = wrong_ids(table, before)
        is_rewritten = self.compacted(table, most.partition or None, until_cleaned=True)
        if is_rewritten:
            self._look_at(table, "looks at a base beside its deltas")
        wrong += [text for text in (differs(plan, before), differs(snapshot, before)) if text]
        if not self._is_open(snapshot.txn):
            self.count("held snapshots that were lost")
            return
        self.count("held snapshots that were rewritten" if is_rewritten else "held snapshots")
        self._say(wrong, f"a held snapshot of {table} {snapshot.write_ids}, transaction {snapshot.txn.id}")

    def _is_open(self, txn: Transaction) -> bool:
        """Whether the service has kept it until now. Raises: MetastoreError (it does not answer)."""
        try:
            txn.require_open()
        except (LostError, TxnAbortedError, NoSuchTxnError):
            return False
        return True


def wrong_ids(table: str, seen: Sequence[tuple[Any, ...]]) -> list[str]:
    """Rows that are there twice, and money that is not right."""
    return twice(table, seen) + (wrong_accounts([row[1] for row in seen]) if table == "accounts" else [])


def differs(read: ArrowRows | Snapshot, before: Sequence[tuple[Any, ...]]) -> str:
    """Describe how a second read differs from the first, or why it failed; "" if both are equal."""
    try:
        after = rows(read.planned() if isinstance(read, Snapshot) else read)
    except TException:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a reader says of files that are gone
        return f"cannot be read again: {error!r:.400}"
    return "" if after == before else f"{len(before)} rows, and then {len(after)}: {_some(before, after)}"


def _some(before: Sequence[tuple[Any, ...]], after: Sequence[tuple[Any, ...]]) -> str:
    lost, more = sorted(set(before) - set(after), key=repr), sorted(set(after) - set(before), key=repr)
    return f"lost {lost[:3]} of {len(lost)}, more {more[:3]} of {len(more)}"
