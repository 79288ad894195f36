"""Transactions, write ids and locks in memory: what a script's answers should be, with nothing to go wrong in between.

It shares the pure rules with the service and nothing else: no SQL, no batches, no isolation levels.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.errors import NoSuchLockError, NoSuchTxnError, TxnAbortedError, TxnOpenError
from metastore.ids import table_name
from metastore.locks import rules as lock_rules
from metastore.locks.rules import Lock, LockRequest, LockState, Operation
from metastore.txns import rules as txn_rules
from metastore.txns.rules import Component, Written

TIMEOUT = timedelta(seconds=300)


@dataclass
class Txn:
    """A transaction."""

    id: int
    alive_at: timedelta
    state: str = "open"
    read_only: bool = False
    components: list[Component] = field(default_factory=list)


class Model:
    """A metastore on two pages."""

    def __init__(self):
        self.now = timedelta()
        self.txns: dict[int, Txn] = {}
        self.written: list[Written] = []
        self.write_ids: dict[str, list[int]] = {}
        self.requests: dict[int, list[Lock]] = {}
        self.lock_alive_at: dict[int, timedelta] = {}
        self.noted: dict[int, tuple[int, int]] = {}
        self.next_lock = 1

    def open(self, *, read_only):
        txn_id = len(self.txns) + 1
        self.txns[txn_id] = Txn(txn_id, self.now, read_only=read_only)
        return txn_id

    def lock(self, request: LockRequest):
        txn = self._opened(request.txn_id) if request.txn_id else None
        lock_id, self.next_lock = self.next_lock, self.next_lock + 1
        if txn:
            known = {(one.name, one.partition, one.operation) for one in txn.components}
            for component in lock_rules.components(request):
                name = table_name(component.object.db, component.object.table)
                operation = txn_rules.Operation(component.operation)
                if (name, component.object.partition, operation) not in known:
                    txn.components.append(Component(txn.id, name, component.object.partition, operation))
        locks = request.locks(lock_id)
        blocked = [lock_rules.Blocked(mine, self._blockers(mine)[0]) for mine in locks if self._blockers(mine)]
        if lock_rules.refusal(request, blocked):
            return lock_id, "not_acquired"
        self.requests[lock_id] = locks
        self.lock_alive_at[lock_id] = self.now
        return lock_id, self._granted_or_waiting(lock_id)

    def check(self, lock_id):
        if lock_id not in self.requests:
            raise NoSuchLockError
        self.lock_alive_at[lock_id] = self.now
        txn_id = self.requests[lock_id][0].txn_id
        if txn_id:
            self.txns[txn_id].alive_at = self.now
        return self._granted_or_waiting(lock_id)

    def unlock(self, lock_id):
        locks = self.requests.get(lock_id, [])
        if any(lock.txn_id and lock.state is LockState.ACQUIRED for lock in locks):
            raise TxnOpenError
        self.requests.pop(lock_id, None)

    def locks(self):
        return [(lock, self._recorded_blocker(lock)) for locks in self.requests.values() for lock in locks]

    def write(self, txn_id, table):
        self._opened(txn_id)
        owners = self.write_ids.setdefault(table, [])
        if txn_id not in owners:
            owners.append(txn_id)
        return owners.index(txn_id) + 1

    def partitions(self, txn_id, table, names, operation: Operation):
        txn = self._opened(txn_id)
        name = table_name(*table.split("."))
        txn.components = [one for one in txn.components if one.name != name or one.partition]
        txn.components += [Component(txn_id, name, partition, txn_rules.Operation(operation[0])) for partition in names]

    def commit(self, txn_id):
        txn = self.txns.get(txn_id)
        if txn and txn.state == "committed":
            return
        txn = self._opened(txn_id)
        mark = len(self.txns)
        if any(one.changes_rows for one in txn.components):
            conflict = txn_rules.first_conflict(txn.components, self.written)
            if conflict:
                self.abort(txn_id)
                raise TxnAbortedError(conflict.message(mark))
        self.written += [Written(txn_id, mark, one.name, one.partition, one.operation) for one in txn.components]
        self._end(txn, "committed")

    def abort(self, txn_id):
        txn = self.txns.get(txn_id)
        if txn is None:
            raise NoSuchTxnError
        if txn.state == "committed":
            raise txn_rules.already_committed(txn_id)
        self._end(txn, "aborted")

    def heartbeat(self, txn_id, lock_id):
        if txn_id:
            if txn_id in self.txns and self.txns[txn_id].state == "committed":
                raise NoSuchTxnError
            self._opened(txn_id).alive_at = self.now
        if lock_id:
            if lock_id not in self.requests:
                raise NoSuchLockError
            self.lock_alive_at[lock_id] = self.now

    def snapshot(self, txn_id):
        others = [txn for txn in self.txns.values() if txn.id < txn_id and txn.state != "committed" and not txn.read_only]
        aborted = frozenset(txn.id for txn in others if txn.state == "aborted")
        opened = [txn.id for txn in others if txn.state == "open"]
        return ValidTxnList(txn_id, min(opened, default=None), tuple(txn.id for txn in others), aborted)

    def reads(self, txn_id, table):
        seen = self.snapshot(txn_id)
        owners = dict(enumerate(self.write_ids.get(table, ()), 1))
        invalid = tuple(write_id for write_id, owner in owners.items() if not seen.is_valid(owner))
        aborted = frozenset(write_id for write_id in invalid if seen.is_aborted(owners[write_id]))
        opened = [write_id for write_id in invalid if write_id not in aborted]
        return ValidWriteIdList(table, len(owners), min(opened, default=None), invalid, aborted)

    def open_txns(self):
        return {txn.id for txn in self.txns.values() if txn.state == "open"}

    def advance(self, delta):
        self.now += delta

    def reap(self):
        for lock_id, locks in list(self.requests.items()):
            if not locks[0].txn_id and self.lock_alive_at[lock_id] < self.now - TIMEOUT:
                del self.requests[lock_id]
        for txn in self.txns.values():
            if txn.state == "open" and txn.alive_at < self.now - TIMEOUT:
                self._end(txn, "aborted")

    def _opened(self, txn_id):
        txn = self.txns.get(txn_id)
        error = txn_rules.required_open(txn_id, txn and txn_rules.TxnState(txn.state))
        if error:
            raise error
        return txn

    def _end(self, txn, state):
        txn.state = state
        self.requests = {lock_id: locks for lock_id, locks in self.requests.items() if locks[0].txn_id != txn.id}

    def _blockers(self, wanted):
        return sorted(lock for locks in self.requests.values() for lock in locks if lock_rules.conflicts(wanted, lock))

    def _granted_or_waiting(self, lock_id):
        locks = self.requests[lock_id]
        if all(lock.state is LockState.ACQUIRED for lock in locks):
            return "acquired"
        blocked = [lock for lock in locks if self._blockers(lock)]
        if blocked:
            self.noted[lock_id] = (blocked[0].int_id, self._blockers(blocked[0])[0].ext_id)
            return "waiting"
        self.requests[lock_id] = [lock._replace(state=LockState.ACQUIRED) for lock in locks]
        return "acquired"

    def _recorded_blocker(self, lock):
        """Noted when the request was last looked at, for its first blocked component."""
        if lock.state is LockState.ACQUIRED:
            return None
        int_id, blocker = self.noted[lock.ext_id]
        return blocker if int_id == lock.int_id else None
