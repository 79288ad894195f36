"""What the clients of a run do: transactions in the manner of several products, snapshots, and locks without one.

Everything that a thread does follows from the seed and its name; how the threads interleave does not.
"""

import threading
from collections.abc import Callable
from itertools import count
from random import Random
from time import monotonic
from uuid import UUID

from metastore.acid.state import NotEnoughHistoryError
from metastore.client import AnswerLostError, MetastoreUnreachableError, Transaction, TxnManager
from metastore.client.answers import ANSWERS
from metastore.client.heartbeat import Heartbeater
from metastore.client.lock_manager import LockWait
from metastore.client.lock_plan import (
    HIVE_DEFAULTS,
    Kind,
    LockModes,
    LockPlan,
    Output,
    StatementLocks,
    Target,
    statement_locks,
)
from metastore.errors import MetastoreError, NoSuchTxnError, TxnAbortedError
from metastore.locks.rules import LockType, Operation
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.txns.core.rules import TxnType
from tests.robustness.harness.deltas import Deltas
from tests.robustness.harness.recording import Log, RecordingClient

KEYS = ("t0/p=0", "t0/p=1", "t0/p=2", "t1/p=0", "t1/p=1", "t2")
LOCKS = ("ice0", "ice1")
HOST = "robustness"
OPTIMISTIC = LockModes(exclusive_write=False, exclusive_overwrite=False)
# How a writer locks what it writes: (modes, kind of statement), by who does so.
WRITERS = {
    "hive": (HIVE_DEFAULTS, Kind.UPDATE), "hive optimistic": (OPTIMISTIC, Kind.UPDATE),
    "trino": (None, Kind.UPDATE), "overwrite": (HIVE_DEFAULTS, Kind.INSERT_OVERWRITE),
    "insert": (HIVE_DEFAULTS, Kind.INSERT)}


class Worker:
    """One client thread."""

    def __init__(self, client: RecordingClient, log: Log, deltas: Deltas, db: str, name: str, rng: Random) -> None:
        self.client, self.log, self.deltas, self.db, self.name, self.rng = client, log, deltas, db, name, rng
        self.manager = TxnManager(client, wait=LockWait(retries=4), host=HOST)
        self._numbers = count()
        self._pause = threading.Event()

    def run(self, number: int, until: float, done: Callable[[], None]) -> None:
        """So many actions, unless time runs out; ``done`` is told of each."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (60, self.write), (15, self.look), (6, self.snapshot), (16, self.section), (3, self.vanish), (6, self.compact),
            (5, self.hold)]
        with self.client:
            for action in self.rng.choices([one for _, one in actions], [weight for weight, _ in actions], k=number):
                while monotonic() < until and not self._done(action):
                    self._pause.wait(0.2)
                done()

    @staticmethod
    def _done(action: Callable[[], None]) -> bool:
        """Whether there was anybody to do it with. What became of each call is written down elsewhere."""
        try:
            action()
        except AnswerLostError:
            return True
        except MetastoreUnreachableError:
            return False
        except (MetastoreError, *ANSWERS):
            return True
        return True

    # ------------------------------------------------------------------------------------------- transactions
    def write(self) -> None:
        """Read some keys, append to some of them, end."""
        style = self.rng.choices(list(WRITERS), (3, 4, 3, 1, 3))[0]
        written = self.rng.sample(KEYS, self.rng.choice((1, 1, 2)))
        changes = WRITERS[style][1] is not Kind.INSERT
        others = self.rng.sample(KEYS, self.rng.choice((0, 1, 2)))
        txn = self.manager.open(user=self.name, agent=self.name)
        try:
            dynamic = self.rng.random() < 0.5
            steps = [lambda: txn.lock(self._locks(style, written, others, dynamic=dynamic)), lambda: self._view(txn)]
            if self.rng.random() < 0.3:
                steps.reverse()
            for step in steps:
                step()
                self._think()
            self._read(txn, sorted({*written, *others}))
            self._think()
            if self.rng.random() < 0.15:   # a second statement: the way into a deadlock
                more = self.rng.sample(KEYS, 1)
                txn.lock(self._locks(style, more, (), dynamic=dynamic))
                self._read(txn, more)
                written = list(dict.fromkeys((*written, *more)))
            self._append(txn, written, changes=changes, dynamic=dynamic)
            if self.rng.random() < 0.2:
                self._read(txn, sorted({*written, *others}))
            self._think()
            if style != "hive" and self.rng.random() < 0.1:
                txn._vouched = True   # a client that claims an exclusive lock which it does not have
        except BaseException:
            self._abort(txn)
            raise
        self._end(txn)

    def look(self) -> None:
        """Read everything under one snapshot, twice."""
        txn = self.manager.open(user=self.name, agent=self.name, kind=self.rng.choice((TxnType.READ_ONLY, TxnType.DEFAULT)))
        try:
            if self.rng.random() < 0.5:
                txn.lock(statement_locks([self._target(key) for key in KEYS]))
            self._view(txn)
            self._read(txn, KEYS)
            self._think()
            self._read(txn, self.rng.sample(KEYS, 3))
        except BaseException:
            txn.abort_quietly()
            raise
        self._end(txn)

    def hold(self) -> None:
        """Read a key and say so, stay while it and others are compacted and cleaned, read again (ADR 136)."""
        txn = self.manager.open(user=self.name, agent=self.name, kind=self.rng.choice((TxnType.READ_ONLY, TxnType.DEFAULT)))
        try:
            self._view(txn)
            keys = self.rng.sample(KEYS, 3)
            self._read(txn, keys[:1], no_others=True)
            for key in keys[:2]:
                self._compact(key, ttypes.CompactionType.MAJOR)
            self._pause.wait(self.rng.choice((3, 6)))
            for key in keys:
                self._read(txn, [key], no_others=True)
        except BaseException:
            txn.abort_quietly()
            raise
        self._end(txn)

    def vanish(self) -> None:
        """Write and go away without a word."""
        txn = self.manager.open(user=self.name, agent=self.name)
        try:
            written = self.rng.sample(KEYS, 1)
            txn.lock(self._locks("hive optimistic", written, (), dynamic=True))
            self._view(txn)
            self._append(txn, written, changes=True, dynamic=True)
        finally:
            txn._heartbeater.stop()

    def snapshot(self) -> None:
        self.rng.choice((self.client.get_open_txns, self.client.get_open_txns_info))()

    def compact(self) -> None:
        """Ask for a compaction, as ALTER TABLE ... COMPACT does; the servers' loops ask for some by themselves."""
        self._compact(self.rng.choice(KEYS), self.rng.choice((ttypes.CompactionType.MAJOR, ttypes.CompactionType.MINOR)))

    def _compact(self, key: str, kind: int) -> None:
        table, _, partition = key.partition("/")
        self.client.compact2(ttypes.CompactionRequest(dbname=self.db, tablename=table, partitionname=partition or None, type=kind))

    def _view(self, txn: Transaction) -> None:
        start = monotonic()
        known = txn.valid_txns()
        self.log.write(view=txn.id, t0=start, t1=monotonic(), mark=known.high_watermark, exceptions=list(known.exceptions))

    def _read(self, txn: Transaction, keys: tuple[str, ...] | list[str], *, no_others: bool | None = None) -> None:
        names = {f"{self.db}.{key.split('/')[0]}": None for key in keys}
        known = txn.valid_write_ids(names, no_others=self.rng.random() < 0.5 if no_others is None else no_others)
        for key in keys:
            table = key.split("/")[0]
            own = txn._write_ids.get((self.db, table))
            try:
                found = self.deltas.read(key, known[f"{self.db}.{table}"], txn.valid_txns(), own)
            except NotEnoughHistoryError as error:
                self.client.heartbeat(ttypes.HeartbeatRequest(txnid=txn.id))   # raises where it has been ended
                self.log.write(unreadable=txn.id, key=key, error=str(error))
                raise
            self.log.write(read=txn.id, key=key, elements=found)

    def _append(self, txn: Transaction, keys: list[str], *, changes: bool, dynamic: bool) -> None:
        for key in keys:
            table = key.split("/")[0]
            write_id = txn.write_id(self.db, table)
            for _ in range(self.rng.choice((1, 1, 2))):
                element = f"{self.name}.{next(self._numbers)}"
                self.log.write(append=txn.id, key=key, element=element, write_id=write_id, changes=changes)
                self.deltas.write(key, write_id, element)
        for table in {key.split("/")[0] for key in keys if "/" in key} if dynamic else ():
            partitions = [key.partition("/")[2] for key in keys if key.startswith(f"{table}/")]
            txn.add_dynamic_partitions(self.db, table, partitions, Operation.UPDATE if changes else Operation.INSERT)

    def _end(self, txn: Transaction) -> None:
        if self.rng.random() < 0.08:
            txn.abort()
            return
        for _ in range(3):
            try:
                txn.commit()
            except NoSuchTxnError:
                return
            except TxnAbortedError:
                self._remove(txn)
                return
            except MetastoreError:
                choice = self.rng.choice(("leave", "abort", "again", "again"))
                if choice == "leave":
                    return
                if choice == "abort":
                    self._abort(txn)
                    return
            else:
                return

    def _abort(self, txn: Transaction) -> None:
        """As Spark and the streaming clients do."""
        if txn.abort_quietly():
            self._remove(txn)

    def _remove(self, txn: Transaction) -> None:
        for (_, table), write_id in txn._write_ids.items():
            self.deltas.remove(write_id, [key for key in KEYS if key.split("/")[0] == table])

    def _locks(self, style: str, written: list[str], read: list[str] | tuple[str, ...], *, dynamic: bool) -> StatementLocks:
        modes, kind = WRITERS[style]
        inputs = [self._target(key) for key in read if key not in written]
        if modes is None:   # Trino: a shared lock whatever it does; only the check at commit protects its updates
            return StatementLocks(tuple(dict.fromkeys(
                LockPlan(LockType.SHARED_READ, Operation.UPDATE, self.db, key.split("/")[0],
                         "" if dynamic else key.partition("/")[2], is_dynamic=dynamic and "/" in key) for key in written)))
        return statement_locks(inputs, [Output(self._target(key, dynamic=dynamic), kind) for key in written], modes)

    def _target(self, key: str, *, dynamic: bool = False) -> Target:
        table, _, partition = key.partition("/")
        return Target(self.db, table, "" if dynamic else partition, is_dynamic=dynamic and bool(partition))

    # ------------------------------------------------------------------------------------------- locks without one
    def section(self) -> None:
        """Commit as Iceberg does it: an exclusive lock, some work, unlock; or no unlock at all."""
        kind = self.rng.choice((LockType.EXCLUSIVE,) * 4 + (LockType.SHARED_READ,))
        plan = LockPlan(kind, Operation.UNSET, self.db, self.rng.choice(LOCKS), is_transactional=False)
        wanted = StatementLocks((plan,))
        # PyIceberg's requests all look the same; each of Iceberg's carries a name of its own.
        alike, name = self.rng.random() < 0.4, UUID(int=self.rng.getrandbits(128), version=4)
        who = {"user": "everybody", "agent_info": "Unknown" if alike else f"Iceberg-{name}"}
        if self.rng.random() < 0.05:
            self._acquire(wanted, who)
            return
        lock_id = self._acquire(wanted, who)
        with Heartbeater(self.client, self.manager.timeout, lock_id=lock_id):
            self._pause.wait(self.rng.choice((0.0, 0.01, 0.05, 0.3, 2.5)))
        self.manager.locks.release(lock_id)

    def _acquire(self, wanted: StatementLocks, who: dict[str, str]) -> int:
        """Ask again with the same words when the answer is lost."""
        try:
            return self.manager.locks.acquire(wanted, host=HOST, **who)
        except MetastoreUnreachableError:
            return self.manager.locks.acquire(wanted, host=HOST, **who)

    def _think(self) -> None:
        self._pause.wait(self.rng.choice((0, 0, 0.005, 0.02, 0.1)))
