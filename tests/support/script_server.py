"""Plays scripts on a server over Thrift."""

from metastore.client import Transaction
from metastore.client.answers import domain_errors
from metastore.locks.rules import Lock, LockObject, LockState, LockType


class ThriftDriver:
    """Plays a script on a server, as a client does; the house-keeper runs when told to."""

    def __init__(self, client, clock, reaper):
        self.client, self.types, self.clock, self.reaper = client, client.types, clock, reaper

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found):
            return found

        def translated(*args, **kwargs):
            with domain_errors():
                return found(*args, **kwargs)
        return translated

    def open(self, *, read_only):
        kind = self.types.TxnType.READ_ONLY if read_only else self.types.TxnType.DEFAULT
        return self.client.open_txns(self.types.OpenTxnRequest(1, "u", "h", txn_type=kind)).txn_ids[0]

    def lock(self, request):
        types = self.types
        answer = self.client.lock(types.LockRequest(
            component=[types.LockComponent(
                type=getattr(types.LockType, wanted.type.name), level=types.LockLevel.TABLE, dbname=wanted.object.db,
                tablename=wanted.object.table or None, partitionname=wanted.object.partition or None,
                operationType=getattr(types.DataOperationType, wanted.operation.name),
                isTransactional=wanted.is_transactional, isDynamicPartitionWrite=wanted.is_dynamic_partition_write)
                for wanted in request.components],
            txnid=request.txn_id, user=request.user, hostname=request.host, zeroWaitReadEnabled=request.zero_wait_read,
            exclusiveCTAS=request.exclusive_ctas))
        return answer.lockid, self._state(answer.state)

    def check(self, lock_id):
        return self._state(self.client.check_lock(self.types.CheckLockRequest(lock_id)).state)

    def unlock(self, lock_id):
        self.client.unlock(self.types.UnlockRequest(lock_id))

    def locks(self):
        names = self.types.LockType._VALUES_TO_NAMES
        return [(Lock(row.lockid, row.lockIdInternal, row.txnid,
                      LockObject("hive", row.dbname, row.tablename or "", row.partname or ""),
                      LockType[names[row.type]], LockState(self._state(row.state))), row.blockedByExtId)
                for row in self.client.show_locks(self.types.ShowLocksRequest()).locks]

    def write(self, txn_id, table):
        db, _, name = table.partition(".")
        request = self.types.AllocateTableWriteIdsRequest(db, name, [txn_id])
        return self.client.allocate_table_write_ids(request).txnToWriteIds[0].writeId

    def partitions(self, txn_id, table, names, operation):
        db, _, name = table.partition(".")
        self.client.add_dynamic_partitions(self.types.AddDynamicPartitions(
            txn_id, 1, db, name, names, getattr(self.types.DataOperationType, operation.name)))

    def commit(self, txn_id):
        self.client.commit_txn(self.types.CommitTxnRequest(txn_id))

    def abort(self, txn_id):
        self.client.abort_txn(self.types.AbortTxnRequest(txn_id))

    def heartbeat(self, txn_id, lock_id):
        self.client.heartbeat(self.types.HeartbeatRequest(lockid=lock_id, txnid=txn_id))

    def snapshot(self, txn_id):
        return self._reader(txn_id).valid_txns()

    def reads(self, txn_id, table):
        return self._reader(txn_id).valid_write_ids([table])[table]

    def open_txns(self):
        return {info.id for info in self.client.get_open_txns_info().open_txns if info.state == self.types.TxnState.OPEN}

    def advance(self, delta):
        self.clock.advance(delta)

    def reap(self):
        assert not self.reaper.tick().failed

    def _reader(self, txn_id):
        """A transaction that the script has opened, as the client library sees it."""
        reader = object.__new__(Transaction)
        reader._client, reader.id, reader._snapshot = self.client, txn_id, None
        return reader

    def _state(self, number):
        return self.types.LockState._VALUES_TO_NAMES[number].lower()
