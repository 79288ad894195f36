"""Write ids (WID-1 to WID-9): who gets which, and which of them a reader may see."""

from typing import NamedTuple

from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.model.state import Component, WriteIds, bits, place, stored, table_of
from tests.support.model.txns import READ_ONLY

EVERYTHING = 2**63 - 1


class Reader(NamedTuple):
    """What a reader knows of transactions."""

    mark: int
    hidden: frozenset[int] = frozenset()
    aborted: frozenset[int] = frozenset()

    def sees(self, txn_id):
        return txn_id <= self.mark and txn_id not in self.hidden


class Tables:
    """The part of the model that knows write ids."""

    def allocate_table_write_ids(self, request):
        table = place(request.dbName, request.tableName)
        if request.replPolicy:
            return self._allocate_replayed(table, request)
        txn_ids = sorted(set(request.txnIds))
        for txn_id in txn_ids:
            if self._open(txn_id).kind == READ_ONLY:
                raise ttypes.MetaException(f"Transaction txnid:{txn_id} is read-only: it cannot get a write id")
        ids = self.write_ids.setdefault(table, WriteIds())
        for txn_id in txn_ids:
            old = ids.of(txn_id)
            if old is not None and request.reallocate:
                del ids.owners[old]
                self._forget(self.txns[txn_id], table)
            if old is None or request.reallocate:
                ids.owners[ids.next] = txn_id
                ids.next += 1
        return self._allocated(table, txn_ids)

    def get_valid_write_ids(self, request):
        reader = self._reader(request)
        return ttypes.GetValidWriteIdsResponse(
            tblValidWriteIds=[self._valid(name, reader) for name in request.fullTableNames])

    def get_max_allocated_table_write_id(self, request):
        ids = self.write_ids.get(place(request.dbName, request.tableName), WriteIds())
        return ttypes.MaxAllocatedTableWriteIdResponse(ids.next - 1)

    def seed_write_id(self, request):
        table = place(request.dbName, request.tableName)
        if table in self.write_ids:
            raise ttypes.MetaException(f"The write ids of hive.{table.db}.{table.table} have begun already")
        self.write_ids[table] = WriteIds(request.seedWriteId + 1, request.seedWriteId)

    def repl_tbl_writeid_state(self, request):
        table = place(request.dbName, request.tableName)
        if table in self.write_ids:
            return
        _, mark, _, _, aborted = request.validWriteIdlist.split(":")
        ids = self.write_ids[table] = WriteIds(int(mark) + 1, int(mark))
        opening = ttypes.OpenTxnRequest(1, request.user, request.hostName)
        for write_id in sorted(int(number) for number in aborted.split(",") if number):
            txn = self._begin(opening)
            ids.owners[write_id] = txn.id
            for partition in request.partNames or [""]:
                txn.components[Component(table._replace(partition=stored(partition)), "i")] = write_id
            self._abort(txn, 51002)
        if aborted:
            self.queue += [(table._replace(partition=stored(partition)), "major", "initiated")
                           for partition in request.partNames or [""]]

    def owned(self, db, table):
        """Return the write ids of a table whose owners are known."""
        return set(self.write_ids.get(place(db, table), WriteIds()).owners)

    def _allocate_replayed(self, table, request):
        pairs = [(self.replicated.get((request.replPolicy, pair.txnId)), pair.writeId) for pair in request.srcTxnToWriteIdList]
        if any(txn_id is None for txn_id, _ in pairs):
            return ttypes.AllocateTableWriteIdsResponse(txnToWriteIds=[])
        for txn_id, _ in pairs:
            self._open(txn_id)
        ids = self.write_ids.setdefault(table, WriteIds())
        first = pairs[0][1]
        if {txn_id: ids.of(txn_id) for txn_id, _ in pairs} != dict(pairs):
            if first != ids.next:
                ids.owners = {}
            ids.owners |= {write_id: txn_id for txn_id, write_id in pairs}
            ids.next, ids.purged = first + len(pairs), min(ids.purged, first - 1)
        return self._allocated(table, [txn_id for txn_id, _ in pairs])

    def _allocated(self, table, txn_ids):
        return ttypes.AllocateTableWriteIdsResponse(txnToWriteIds=[
            ttypes.TxnToWriteId(txn_id, self.write_ids[table].of(txn_id)) for txn_id in sorted(txn_ids)])

    def _reader(self, request):
        if request.validTxnList is not None:
            return parsed(request.validTxnList)
        current = 0
        if request.writeId is not None:
            ids = self.write_ids.get(table_of(request.fullTableNames[0]), WriteIds())
            current = ids.owners.get(request.writeId, 0)
            if not current:
                raise ttypes.MetaException(
                    f"invalid write id {request.writeId} for table {request.fullTableNames[0]}")
        hidden = [txn for txn in self._listed() if not current or txn.id < current]
        return Reader(min(current, self.next_txn - 1) if current else self.next_txn - 1, frozenset(txn.id for txn in hidden),
                      frozenset(txn.id for txn in hidden if txn.state == "aborted"))

    def _valid(self, name, reader):
        ids = self.write_ids.get(table_of(name), WriteIds())
        known = [write_id for write_id, owner in ids.owners.items() if owner <= reader.mark]
        mark = max(*known, ids.purged) if known else ids.next - 1
        invalid = sorted(write_id for write_id, owner in ids.owners.items() if write_id <= mark and not reader.sees(owner))
        aborted = {write_id for write_id in invalid if ids.owners[write_id] in reader.aborted}
        oldest = min(set(invalid) - aborted, default=None)
        if invalid and not any(reader.sees(owner) for write_id, owner in ids.owners.items() if write_id <= mark) \
                and ids.purged < invalid[0]:
            mark, invalid = invalid[0], invalid[:1]
        return ttypes.TableValidWriteIds(
            fullTableName=name, writeIdHighWaterMark=mark, invalidWriteIds=invalid, minOpenWriteId=oldest,
            abortedBits=bits([write_id in aborted for write_id in invalid]))

    def _owned(self, where, txn_id):
        return self.write_ids.get(where.whole_table, WriteIds()).of(txn_id)

    def _write_id(self, txn, component):
        """Return the write id that the component named, or the one that the transaction has got by now."""
        return txn.components[component] or self._owned(component.place, txn.id)

    @staticmethod
    def _forget(txn, table):
        txn.components = {component: None if component.place.whole_table == table else write_id
                          for component, write_id in txn.components.items()}


def parsed(text):
    """``mark:oldest:open,open:aborted,aborted``; no text: everything is visible."""
    if not text:
        return Reader(EVERYTHING)
    mark, _, opened, aborted = (text + "::").split(":")[:4]
    opened, aborted = ({int(number) for number in part.split(",") if number} for part in (opened, aborted))
    return Reader(int(mark), frozenset(opened | aborted), frozenset(aborted))
