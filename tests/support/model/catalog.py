"""The little that transactions need of the catalog: parameters, drops and renames (TXN-43)."""

from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.model.state import Lock, Place, WriteIds, place
from tests.support.model.txns import internal

KEY_PREFIX = "_meta"
EXCLUSIVE = ttypes.LockType.EXCLUSIVE


class Catalog:
    """The part of the model that knows databases, tables and partitions: their parameters by their place."""

    def make(self, where, parameters=None):
        """Create a database, a table or a partition."""
        self.parameters_of[where] = dict(parameters or {})

    def drop(self, where):
        """A partition leaves the write ids alone; a table takes them along. Nobody else may have a lock there (ADR 46)."""
        self._require_unlocked(where)
        def below(one):
            return one[:len(_named(where))] == _named(where)
        self.parameters_of = {one: known for one, known in self.parameters_of.items() if not below(one)}
        for txn in self.txns.values():
            txn.components = {one: write_id for one, write_id in txn.components.items() if not below(one.place)}
        self.completed = [one for one in self.completed if not below(one.place)]
        self.queue = [one for one in self.queue if not below(one[0])]
        if not where.partition:
            self.write_ids = {one: _anew(ids) if below(one) else ids for one, ids in self.write_ids.items()}

    def rename(self, where, name):
        """A table's write ids, components, locks and committed writes follow it; nobody else may have a lock there."""
        self._require_unlocked(where)
        def moved(one):
            return one._replace(table=name) if one.whole_table == where else one
        self.parameters_of = {moved(one): known for one, known in self.parameters_of.items()}
        marks = {one: _anew(ids) for one, ids in self.write_ids.items() if one == where}
        self.write_ids = marks | {moved(one): ids for one, ids in self.write_ids.items()}
        for txn in self.txns.values():
            txn.components = {one._replace(place=moved(one.place)): known for one, known in txn.components.items()}
        for row in self.locks:
            row.place = moved(row.place)
        self.write_set = [one._replace(place=moved(one.place)) for one in self.write_set]
        self.completed = [one._replace(place=moved(one.place)) for one in self.completed]

    def _require_unlocked(self, where):
        """An exclusive lock in a transaction that writes nothing there is the caller's own: Hive has it when it drops."""
        def writes(row):
            return any(one.place.db == row.place.db and row.place.table in {"", one.place.table}
                       for one in self.txns[row.txn_id].components)
        own = any(row.kind == EXCLUSIVE and row.acquired_at is not None and row.txn_id and not writes(row)
                  and _named(row.place) == where[:len(_named(row.place))] for row in self.locks)
        mine = Lock(self.next_lock, 1, 0, where, EXCLUSIVE, None)
        if not own and self._blockers(mine):
            raise ttypes.MetaException("has to wait")

    def table_id(self, where):
        return list(self.parameters_of).index(where)

    def parameter(self, where, key):
        return self.parameters_of[where].get(key)

    def _parameters_to_change(self, request):
        """What the commit changes in the catalog; nothing if one of it cannot be changed."""
        changes = []
        last = request.replLastIdInfo
        if last is not None:
            places = [Place(last.database), *([place(last.database, last.table)] if last.table else []),
                      *(place(last.database, last.table, one) for one in last.partitionList or ())]
            missing = [one for one in places if one not in self.parameters_of]
            if missing:
                raise internal("Cannot note the replication id")
            changes += [(self.parameters_of[one], "repl.last.id", str(last.lastReplId)) for one in places]
        pair = request.keyValue
        if pair is not None:
            known = list(self.parameters_of.values())[pair.tableId]
            if not pair.key.startswith(KEY_PREFIX) or pair.key not in known:
                raise internal("")
            changes.append((known, pair.key, pair.value))
        return changes

    def _flag_incompatible(self, policy):
        database = Place(policy.split(".")[0].lower())
        if database in self.parameters_of:
            self.parameters_of[database]["repl.incompatible"] = "true"

    def _locked(self, txn, component, kinds):
        """Whether an acquired lock of one of these kinds of the transaction covers the component (TXN-31)."""
        return any(row.txn_id == txn.id and row.acquired_at is not None and row.kind in kinds
                   and _named(row.place) == component.place[:len(_named(row.place))] for row in self.locks)


def _anew(ids):
    """What a name keeps when its table goes: its ids go on (ADR 0037)."""
    return WriteIds(ids.next, ids.next - 1)


def _named(where):
    return tuple(part for part in where if part)

