"""Transactions (TXN-1 to TXN-23, TXN-26 to TXN-41): opened, kept alive, ended, listed."""

from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.model.state import Completed, Component, Txn, Write, bits, place, stored

READ_ONLY, REPL_CREATED = ttypes.TxnType.READ_ONLY, ttypes.TxnType.REPL_CREATED
COMPACTING = (ttypes.TxnType.COMPACTION, ttypes.TxnType.SOFT_DELETE)
UNCOMPLETED = (*COMPACTING, ttypes.TxnType.REBALANCE_COMPACTION)
EXCLUDING = {ttypes.LockType.EXCL_WRITE, ttypes.LockType.EXCLUSIVE}
GUARDING = EXCLUDING | {ttypes.LockType.SHARED_WRITE}
LETTERS = {ttypes.DataOperationType.INSERT: "i", ttypes.DataOperationType.UPDATE: "u", ttypes.DataOperationType.DELETE: "d"}
CODES = (*range(50000, 50009), *range(51000, 51003))
NO_REASON, COMMANDED, CONFLICT, TIMED_OUT, DRIVER, REPLAYED, DEADLOCKED = 50000, 50001, 50003, 50004, 51000, 51001, 52000
BY_ANOTHER = {COMMANDED, TIMED_OUT, DEADLOCKED}
STATES = {"open": ttypes.TxnState.OPEN, "aborted": ttypes.TxnState.ABORTED}


class Txns:
    """The part of the model that knows transactions."""

    def open_txns(self, request):
        replays = request.txn_type == REPL_CREATED or (request.replPolicy and request.replSrcTxnIds)
        if replays:
            return ttypes.OpenTxnsResponse(txn_ids=self._open_replayed(request))
        if request.num_txns <= 0:
            raise internal(f"Invalid input for number of txns: {request.num_txns}")
        limit = self.max_open_txns * 9 // 10 if self.refusing else self.max_open_txns
        self.refusing = sum(txn.state == "open" for txn in self.txns.values()) >= limit
        if self.refusing:
            raise internal("Maximum allowed number of open transactions has been reached. See hive.max.open.txns.")
        return ttypes.OpenTxnsResponse(
            txn_ids=[self._begin(request).id for _ in range(min(request.num_txns, self.max_batch))])

    def abort_txn(self, request):
        replays = self._replays(request)
        txn_id = self.replicated.get((request.replPolicy, request.txnid)) if replays else request.txnid
        if txn_id is None:
            return
        txn = self.txns.get(txn_id)
        if txn is None or txn.state == "committed":
            known = txn is not None or any(completed.txn_id == txn_id for completed in self.completed)
            raise committed_already(txn_id) if known else no_such_txn(txn_id)
        code = request.errorCode if request.errorCode in CODES else NO_REASON
        if request.replPolicy is not None:
            code = REPLAYED if replays else DRIVER
        self._abort(txn, code, replays=replays)

    def abort_txns(self, request):
        for txn_id in request.txn_ids:
            if txn_id in self.txns:
                code = request.errorCode if request.errorCode in CODES else NO_REASON
                self._abort(self.txns[txn_id], COMMANDED if code == NO_REASON else code)

    def commit_txn(self, request):
        txn_id, replays = request.txnid, self._replays(request)
        if replays:
            txn_id = self.replicated.get((request.replPolicy, request.txnid))
            if txn_id is None:
                return
        txn = self.txns.get(txn_id)
        if txn is None and any(completed.txn_id == txn_id for completed in self.completed):
            return
        if txn is not None and txn.state == "committed":
            return
        txn = self._open(txn_id)
        changes = self._parameters_to_change(request)
        mark = self.next_txn - 1
        changed = [component for component in txn.components if component.changes_rows and txn.kind not in (*COMPACTING, READ_ONLY)]
        if not replays:
            excused = request.exclWriteEnabled and all(self._locked(txn, component, EXCLUDING) for component in changed)
            self._refuse_second_committer(txn, changed, mark, excused=excused)
        for parameters, key, value in changes:
            parameters[key] = value
        if replays:
            self.completed += [Completed(txn_id, place(event.database, event.table, event.partition), event.writeId, False)
                               for event in request.writeEventInfos or ()]
            del self.replicated[request.replPolicy, request.txnid]
        else:
            self.write_set += [Write(txn_id, mark, *change, guarded=self._locked(txn, change, GUARDING)) for change in changed]
            if txn.kind not in (*UNCOMPLETED, READ_ONLY):
                written = {(component.place, self._write_id(txn, component)) for component in txn.components if component.letter != "c"}
                self.completed += [Completed(txn_id, *component, bool(changed)) for component in sorted(written, key=str)]
        txn.commit_id = mark
        txn.components = {}
        self._end(txn, "committed")

    def heartbeat(self, request):
        if request.txnid:
            txn = self.txns.get(request.txnid)
            if txn is not None and txn.state == "committed":
                raise ttypes.NoSuchTxnException(f"No such txn: {request.txnid}")
            txn = self._open(request.txnid)
            txn.alive, txn.beats = self.now, txn.beats + 1
        if request.lockid:
            rows = self._rows(request.lockid)
            if not rows:
                raise ttypes.NoSuchLockException(f"No such lock: {request.lockid}")
            for row in rows:
                row.alive, row.beats = self.now, row.beats + 1

    def heartbeat_txn_range(self, request):
        aborted, unknown = set(), set()
        for txn_id in range(request.min, request.max + 1):
            txn = self.txns.get(txn_id)
            if txn is not None and txn.state == "open":
                txn.alive, txn.beats = self.now, txn.beats + 1
            elif txn is not None and txn.state == "aborted":
                aborted.add(txn_id)
            else:
                unknown.add(txn_id)
        return ttypes.HeartbeatTxnRangeResponse(aborted=aborted, nosuch=unknown)

    def get_open_txns(self):
        return self.get_open_txns_req(ttypes.GetOpenTxnsRequest(excludeTxnTypes=[READ_ONLY]))

    def get_open_txns_req(self, request):
        listed = [txn for txn in self._listed() if txn.kind not in (request.excludeTxnTypes or ())]
        return ttypes.GetOpenTxnsResponse(
            txn_high_water_mark=self.next_txn - 1, open_txns=[txn.id for txn in listed], min_open_txn=self._oldest(),
            abortedBits=bits([txn.state == "aborted" for txn in listed]))

    def get_open_txns_info(self):
        return ttypes.GetOpenTxnsInfoResponse(txn_high_water_mark=self.next_txn - 1, open_txns=[
            ttypes.TxnInfo(id=txn.id, state=STATES[txn.state], user=txn.user, hostname=txn.host, agentInfo=txn.agent,
                           heartbeatCount=txn.beats, startedTime=txn.started, lastHeartbeatTime=txn.alive)
            for txn in self._listed()])

    def add_dynamic_partitions(self, request):
        txn = self._open(request.txnid)
        table = place(request.dbname, request.tablename)
        letter = LETTERS.get(request.operationType, "u")
        for name in request.partitionnames:
            txn.components.setdefault(Component(table._replace(partition=stored(name)), letter), request.writeid or None)
        replaced = {component: write_id for component, write_id in txn.components.items() if component.place == table and component.letter != "c"}
        txn.components = {component: write_id for component, write_id in txn.components.items() if component not in replaced}
        if replaced:   # it may write more partitions than it has named: until it commits that must not be forgotten
            known = [write_id for write_id in replaced.values() if write_id is not None]
            txn.components.setdefault(Component(table, "c"), max(known, default=None))

    def get_latest_txnid_in_conflict(self, txn_id):
        txn = self.txns.get(txn_id)
        mine = [component.place for component in txn.components if component.changes_rows] if txn is not None else []
        return max((theirs.txn_id for theirs in self.write_set for component in mine
                    if theirs.letter != "i" and theirs.commit_id >= txn_id and theirs.place.whole_table == component.whole_table
                    and component.partition in {"", theirs.place.partition}), default=0)

    def seed_txn_id(self, request):
        mark = self.next_txn - 1
        if mark >= request.seedTxnId:
            raise ttypes.MetaException(f"Invalid txnId seed {request.seedTxnId}, the highWaterMark is {mark}")
        self.next_txn = request.seedTxnId

    def _begin(self, request, kind=None):
        txn = Txn(self.next_txn, request.txn_type if kind is None else kind, request.user, request.hostname,
                  request.agentInfo or "Unknown", self.now, self.now)
        self.txns[txn.id] = txn
        self.next_txn += 1
        return txn

    def _open_replayed(self, request):
        if not request.replPolicy or not request.replSrcTxnIds:
            raise internal("A replicated transaction needs replPolicy and replSrcTxnIds")
        known = [self.replicated[request.replPolicy, source] for source in request.replSrcTxnIds
                 if (request.replPolicy, source) in self.replicated]
        if known:
            return known
        for source in request.replSrcTxnIds:
            self.replicated[request.replPolicy, source] = self._begin(request, REPL_CREATED).id
        return [self.replicated[request.replPolicy, source] for source in request.replSrcTxnIds]

    def _refuse_second_committer(self, txn, changed, mark, *, excused):
        """Excused from what its exclusive locks had to wait for; an update under shared locks goes past them."""
        rivals = [(theirs.commit_id, theirs.txn_id, mine.place, mine.letter, theirs.letter)
                  for theirs in self.write_set for mine in changed
                  if theirs.place == mine.place and theirs.txn_id != txn.id and txn.id <= theirs.commit_id
                  and not (excused and theirs.guarded)]
        if rivals:
            commit_id, winner, where, mine, theirs = min(rivals)
            self._abort(txn, CONFLICT)
            raise ttypes.TxnAbortedException(
                f"Aborting [txnid:{txn.id},{mark}] due to a write conflict on {where} committed by "
                f"[txnid:{winner},{commit_id}] {mine}/{theirs}")

    def _abort(self, txn, code, *, replays=False):
        if txn.state == "open":
            txn.code = code
            for (policy, source), target in list(self.replicated.items()):
                if target == txn.id:
                    del self.replicated[policy, source]
                    if not replays:
                        self._flag_incompatible(policy)
            self._end(txn, "aborted")
            txn.may_publish = code in BY_ANOTHER
            self._may_have_written(txn)
        elif txn.state == "aborted" and code not in BY_ANOTHER:   # its owner says that he publishes nothing any more
            txn.may_publish = False

    def _may_have_written(self, txn):
        """Somewhere in each table of which it had a write id, where it never said what it writes."""
        said = {component.place.whole_table for component in txn.components}
        for table, ids in self.write_ids.items():
            for write_id, owner in ids.owners.items():
                if owner == txn.id and table not in said:
                    txn.components[Component(table, "c")] = write_id

    def _end(self, txn, state):
        txn.state, txn.ended = state, self.now
        self.locks = [row for row in self.locks if row.txn_id != txn.id]
        self.rebuilds = {view: held for view, held in self.rebuilds.items() if held[0] != txn.id}

    def _open(self, txn_id):
        """Return the transaction, which must be open."""
        txn = self.txns.get(txn_id)
        if txn is None:
            raise no_such_txn(txn_id)
        if txn.state == "committed":
            raise committed_already(txn_id)
        if txn.state == "aborted":
            raise ttypes.TxnAbortedException(f"Transaction txnid:{txn_id} already aborted")
        return txn

    def _listed(self):
        return [txn for txn in self.txns.values() if txn.state == "open" or (txn.state == "aborted" and txn.listed)]

    def _oldest(self):
        return min((txn.id for txn in self.txns.values() if txn.state == "open"), default=None)

    @staticmethod
    def _replays(request):
        return request.replPolicy is not None and request.txn_type in (None, REPL_CREATED)


def internal(text):
    """Return the error of a call that declares no exception for it."""
    return TApplicationException(TApplicationException.INTERNAL_ERROR, text)


def no_such_txn(txn_id):
    return ttypes.NoSuchTxnException(f"No such transaction txnid:{txn_id}")


def committed_already(txn_id):
    return ttypes.NoSuchTxnException(f"Transaction txnid:{txn_id} is already committed.")
