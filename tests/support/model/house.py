"""Time, and what the house-keepers do (TXN-14, TXN-18, TXN-42); materialized views (TXN-44, TXN-45)."""

import json

from thrift.protocol.TBase import TExceptionBase
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.model.state import place, table_of
from tests.support.model.txns import REPL_CREATED, TIMED_OUT, internal
from tests.support.model.write_ids import EVERYTHING, parsed

REPL_TIMEOUT_MS = 11 * 86_400_000
RETENTION_MS = 3_600_000


class House:
    """The part of the model that cleans up."""

    timeout_ms = 300_000

    def advance(self, delta):
        self.now += int(delta.total_seconds() * 1000)

    def expire(self):
        self.locks = [row for row in self.locks if row.txn_id or row.alive >= self.now - self.timeout_ms]
        for txn in self.txns.values():
            if txn.state == "open" and self._silent(txn):
                self._abort(txn, TIMED_OUT)

    def _silent(self, txn):
        return txn.alive < self.now - (REPL_TIMEOUT_MS if txn.kind == REPL_CREATED else self.timeout_ms)

    def _end_expired(self, ext_id):
        """End the owner of a request if it has expired; whether it has."""
        row = self._rows(ext_id)[0]
        if row.txn_id and self._silent(self.txns[row.txn_id]):
            self._abort(self.txns[row.txn_id], TIMED_OUT)
        elif not row.txn_id and row.alive < self.now - self.timeout_ms:
            self.locks = [lock for lock in self.locks if lock.ext_id != ext_id]
        else:
            return False
        return True

    def purge(self):
        oldest = self._oldest() or self.next_txn
        self.write_set = [write for write in self.write_set if write.commit_id >= oldest]
        self._forget_owners([txn for txn in self.txns.values() if txn.state == "committed" and txn.commit_id < oldest])
        self._drop_duplicates(oldest)
        self.rebuilds = {view: (txn_id, alive) for view, (txn_id, alive) in self.rebuilds.items()
                         if alive >= self.now - self.timeout_ms or self._is_open(txn_id)}
        emptied = [txn for txn in self.txns.values() if txn.state == "aborted" and not txn.components]
        for txn in emptied:
            txn.listed = False
        self._forget_owners(emptied)
        owners = {owner for ids in self.write_ids.values() for owner in ids.owners.values()}
        self.txns = {txn.id: txn for txn in self.txns.values() if not (
            (txn.state == "committed" or not txn.listed) and txn.ended < self.now - RETENTION_MS and txn.id not in owners)}

    def clean(self):
        """Forget the components of aborted transactions whose files the Cleaner removed, unless more may appear. No base is there."""
        for txn in self.txns.values():
            if txn.state == "aborted":
                txn.components = {component: write_id for component, write_id in txn.components.items()
                                  if not component.place.table or (txn.may_publish and self._write_id(txn, component) is not None)}

    def get_lock_materialization_rebuild(self, db, table, txn_id):
        try:
            self._open(txn_id)
        except TExceptionBase as error:
            raise internal(error.message) from None
        view = place(db, table)
        free = self.rebuilds.get(view, (txn_id, 0))[0] == txn_id
        if free:
            self.rebuilds[view] = (txn_id, self.now)
        return ttypes.LockResponse(
            lockid=txn_id, state=ttypes.LockState.ACQUIRED if free else ttypes.LockState.NOT_ACQUIRED)

    def heartbeat_lock_materialization_rebuild(self, db, table, txn_id):
        view = place(db, table)
        held = self.rebuilds.get(view, (None, 0))[0] == txn_id
        if held:
            self.rebuilds[view] = (txn_id, self.now)
        return held

    def get_materialization_invalidation_info(self, metadata, valid_txns):
        stored, used = metadata.validTxnList, sorted(metadata.tablesUsed)
        if stored.startswith("{"):
            stored = json.loads(stored)["validTxnList"]
        then = {text.split(":")[0]: text.split(":") for text in stored.split("$")[1:]}
        reader = parsed(valid_txns)
        now = [self._valid(name, reader) for name in used]
        if not used or any(write_ids.fullTableName not in then or (write_ids.minOpenWriteId or EVERYTHING) != int(
                then[write_ids.fullTableName][2]) for write_ids in now):
            raise TApplicationException(TApplicationException.MISSING_RESULT, "")

        def is_new(name, write_id):
            _, mark, _, opened, aborted = then[name]
            return write_id > int(mark) or str(write_id) in [*opened.split(","), *aborted.split(",")]
        changed = any(completed.changed_rows and completed.place.whole_table == table_of(name) and reader.sees(completed.txn_id)
                      and is_new(name, completed.write_id) for completed in self.completed for name in used)
        return ttypes.Materialization(
            sourceTablesUpdateDeleteModified=changed,
            sourceTablesCompacted=any(where.whole_table == table_of(name) for where, *_ in self.queue for name in used))

    def _is_open(self, txn_id):
        return txn_id in self.txns and self.txns[txn_id].state == "open"

    def _forget_owners(self, txns):
        """Their write ids count as valid from now on."""
        gone = {txn.id for txn in txns}
        for ids in self.write_ids.values():
            purged = [write_id for write_id, owner in ids.owners.items() if owner in gone]
            ids.purged = max([ids.purged, *purged])
            ids.owners = {write_id: owner for write_id, owner in ids.owners.items() if owner not in gone}

    def _drop_duplicates(self, oldest):
        """Of what everybody sees only the newest write and the newest change of each place say anything."""
        settled = [completed for completed in self.completed
                   if completed.txn_id not in self.txns or self.txns[completed.txn_id].commit_id < oldest]

        def stale(completed):
            rivals = [other for other in settled if other.place == completed.place]
            newest = max((other.write_id or 0 for other in rivals), default=0)
            change = max((other.write_id or 0 for other in rivals if other.changed_rows), default=0)
            return len(rivals) > 1 and completed.write_id is not None and completed.write_id < newest and (
                not completed.changed_rows or completed.write_id < change)
        self.completed = [completed for completed in self.completed if not stale(completed)]
