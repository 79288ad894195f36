"""Locks (LOCK-1 to LOCK-15): who waits for whom, in the order of asking."""

import re

from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.model.state import Component, Lock, place
from tests.support.model.txns import DEADLOCKED, LETTERS, internal

READ, WRITE = ttypes.LockType.SHARED_READ, ttypes.LockType.SHARED_WRITE
EXCL_WRITE, EXCLUSIVE = ttypes.LockType.EXCL_WRITE, ttypes.LockType.EXCLUSIVE
ACQUIRED, WAITING = ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING
NOT_ACQUIRED = ttypes.LockState.NOT_ACQUIRED
UNSET = ttypes.DataOperationType.UNSET

# LOCK-1, as it stands there: a row asks, a column was there before.
MATRIX = {
    #             READ         WRITE        EXCL_WRITE   EXCLUSIVE
    READ:       {READ: "ok",   WRITE: "ok",   EXCL_WRITE: "ok",   EXCLUSIVE: "wait"},
    WRITE:      {READ: "ok",   WRITE: "ok",   EXCL_WRITE: "wait", EXCLUSIVE: "wait"},
    EXCL_WRITE: {READ: "ok",   WRITE: "wait", EXCL_WRITE: "wait", EXCLUSIVE: "wait"},
    EXCLUSIVE:  {READ: "wait", WRITE: "wait", EXCL_WRITE: "wait", EXCLUSIVE: "wait"},
}
WEAKEST_FIRST = [READ, WRITE, EXCL_WRITE, EXCLUSIVE]


class Locks:
    """The part of the model that knows locks."""

    def lock(self, request):
        if not request.component:
            raise internal("A lock request needs at least one component.")
        txn_id = request.txnid or 0
        if txn_id:
            self._declare(self._open(txn_id), request)
        ext_id = self.next_lock
        self.next_lock += 1
        rows = [Lock(ext_id, int_id, txn_id, place(component.dbname, component.tablename, component.partitionname), component.type, request,
                     0 if txn_id else self.now)
                for int_id, component in enumerate(request.component, 1)]
        blocked = [(row, blockers) for row in rows if (blockers := self._blockers(row))]
        if blocked and (before := self._asked_before(rows)):
            return self._after_deadlocks(txn_id, ttypes.LockResponse(
                lockid=before[0].ext_id, state=WAITING if before[0].acquired_at is None else ACQUIRED))
        refusal = self._refusal(request, blocked) if txn_id else None
        if refusal:
            return ttypes.LockResponse(lockid=ext_id, state=NOT_ACQUIRED, errorMessage=refusal)
        self.locks += rows
        return self._after_deadlocks(txn_id, self._answer(ext_id))

    def _asked_before(self, rows):
        """Return the stored request that these rows repeat: of a transaction, or of an Iceberg client."""
        looks = self._looks(rows)
        if not rows[0].txn_id and not re.fullmatch(r"Iceberg-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", looks[0]):
            return None
        stored = (self._rows(ext_id) for ext_id in sorted({row.ext_id for row in self.locks}))
        before = next((earlier for earlier in stored if self._looks(earlier) == looks), None)
        for row in before or ():
            row.alive = self.now if not row.txn_id else row.alive
        return before

    @staticmethod
    def _looks(rows):
        request = rows[0].request
        return (request.agentInfo or "Unknown", request.user, request.hostname, rows[0].txn_id,
                [(row.place, row.kind) for row in rows])

    def _after_deadlocks(self, txn_id, answer):
        """End deadlocks that the request has closed; return the answer, or raise if its transaction died in one (LOCK-8)."""
        doomed = set()
        while self.ends_deadlocks and txn_id and answer.state == WAITING:
            circle = self._circle(txn_id)
            if circle is None:
                break
            requests = {party: {row.ext_id for row in self.locks if self._party(row) == party} for party in circle}
            victim = max(party for party in circle if len(requests[party]) > 1)
            doomed.add(victim)
            self.victims |= dict.fromkeys(requests[victim], victim)
            self._abort(self.txns[victim], DEADLOCKED)
        if txn_id in doomed:
            raise self._died(txn_id)
        return answer

    def _circle(self, start):
        """Return the parties of the shortest circle of waits through a party, None without a circle."""
        paths, seen = [[start]], set()
        for path in paths:
            for row in sorted(self.locks, key=lambda row: (row.ext_id, row.int_id)):
                if self._party(row) == path[-1] and row.acquired_at is None:
                    for ext_id, _ in self._blockers(row):
                        party = self._party(self._rows(ext_id)[0])
                        if party == start:
                            return path
                        if party not in seen:
                            seen.add(party)
                            paths.append([*path, party])
        return None

    @staticmethod
    def _party(row):
        return row.txn_id or -row.ext_id

    @staticmethod
    def _died(txn_id):
        return ttypes.TxnAbortedException(f"Transaction txnid:{txn_id} was aborted to end a deadlock")

    def check_lock(self, request):
        """Whoever is in the way and has expired is ended, the latest first, until somebody alive is in the way (TXN-18)."""
        answer = self._look(request)
        while answer.state == WAITING and self._end_expired(self._latest_ahead(request.lockid)):
            answer = self._look(request)
        return answer

    def _latest_ahead(self, ext_id):
        return max(blocker for row in self._rows(ext_id) for blocker in self._blockers(row))[0]

    def _look(self, request):
        rows = self._rows(request.lockid)
        if not rows and request.lockid in self.victims:
            raise self._died(self.victims[request.lockid])
        if not rows:
            raise ttypes.NoSuchLockException(f"No such lock lockid:{request.lockid}")
        if rows[0].txn_id:
            txn = self._open(rows[0].txn_id)
            txn.alive, txn.beats = self.now, txn.beats + 1
        else:
            for row in rows:
                row.alive, row.beats = self.now, row.beats + 1
        return self._answer(request.lockid)

    def unlock(self, request):
        rows = self._rows(request.lockid)
        if any(row.txn_id and row.acquired_at is not None for row in rows):
            raise ttypes.TxnOpenException("Unlocking locks associated with transaction not permitted.  ")
        self.locks = [row for row in self.locks if row.ext_id != request.lockid]

    def show_locks(self, request):
        wanted = [row for row in self.locks
                  if request.dbname in {None, ""} or row.place.db == request.dbname.lower()]
        if request.tablename:
            wanted = [row for row in wanted if row.place.table == request.tablename.lower()]
        if request.partname:
            wanted = [row for row in wanted if row.place.partition == place("d", "t", request.partname).partition]
        if request.txnid is not None:
            wanted = [row for row in wanted if row.txn_id == request.txnid]
        return ttypes.ShowLocksResponse(locks=[self._shown(row) for row in sorted(wanted, key=lambda row: (
            row.acquired_at is None, WEAKEST_FIRST.index(row.kind), row.ext_id, row.int_id))])

    def _declare(self, txn, request):
        """Note what the locks say that the transaction is going to write (LOCK-14, LOCK-15)."""
        declared, dynamic = {}, {}
        for wanted in request.component:
            letter = LETTERS.get(wanted.operationType) if wanted.isTransactional else None
            if wanted.operationType in {None, UNSET}:
                letter = "i" if wanted.type == READ else "u"
            where = place(wanted.dbname, wanted.tablename, wanted.partitionname)
            if letter and wanted.isDynamicPartitionWrite:
                dynamic.setdefault(where.whole_table, set()).add(letter)
            elif letter:
                declared[Component(where, letter)] = None
        touched = {component.place.whole_table for component in declared}
        for table, letters in dynamic.items():
            if table not in touched:
                declared[Component(table, "i" if letters == {"i"} else "u")] = None
        for component in declared:
            txn.components.setdefault(component, self._owned(component.place, txn.id))

    def _blockers(self, asking):
        return sorted((row.ext_id, row.int_id) for row in self.locks if self._waits(asking, row))

    @staticmethod
    def _waits(asking, there):
        mine, theirs = asking.place, there.place
        if there.ext_id >= asking.ext_id or (asking.txn_id and asking.txn_id == there.txn_id):
            return False
        if mine.db != theirs.db or (mine.table and theirs.table and mine.table != theirs.table):
            return False
        if mine.partition and theirs.partition and mine.partition != theirs.partition:
            return False
        if asking.kind == READ and not mine.table and theirs.table:
            return False
        if there.kind == READ and not theirs.table and asking.kind == EXCLUSIVE and mine.table:
            return False
        return MATRIX[asking.kind][there.kind] == "wait"

    @staticmethod
    def _refusal(request, blocked):
        if request.zeroWaitReadEnabled:
            for row, blockers in blocked:
                if row.kind == READ:
                    return f"Unable to acquire read lock due to an existing exclusive lock {{lockid:{blockers[0][0]}"
        if request.exclusiveCTAS and blocked:
            return ("Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : "
                    f"{{lockid:{blocked[0][1][0][0]}")
        return None

    def _answer(self, ext_id):
        """Grant the request, all of it, if nothing is in the way of any of it."""
        rows = self._rows(ext_id)
        waiting = [row for row in rows if row.acquired_at is None]
        blocked = [(row, blockers[0]) for row in waiting if (blockers := self._blockers(row))]
        for row in waiting:
            row.blocker = None
        if blocked:
            blocked[0][0].blocker = blocked[0][1]
            return ttypes.LockResponse(lockid=ext_id, state=WAITING)
        for row in waiting:
            row.acquired_at = self.now
        return ttypes.LockResponse(lockid=ext_id, state=ACQUIRED)

    def _rows(self, ext_id):
        return [row for row in self.locks if row.ext_id == ext_id]

    @staticmethod
    def _shown(row):
        blocker = row.blocker or (None, None)
        return ttypes.ShowLocksResponseElement(
            lockid=row.ext_id, lockIdInternal=row.int_id, dbname=row.place.db, tablename=row.place.table or None,
            partname=row.place.partition or None, state=WAITING if row.acquired_at is None else ACQUIRED, type=row.kind,
            txnid=row.txn_id, lastheartbeat=row.alive, acquiredat=row.acquired_at,
            user=row.request.user, hostname=row.request.hostname, heartbeatCount=row.beats,
            agentInfo=row.request.agentInfo or "Unknown", blockedByExtId=blocker[0], blockedByIntId=blocker[1])
