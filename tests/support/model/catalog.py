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
        """Drop a place: a partition leaves the write ids alone, a table takes them along. Nobody else may have a lock there (ADR 46)."""
        self._require_unlocked(where)
        def below(where_it_is):
            return where_it_is[:len(_named(where))] == _named(where)
        self.parameters_of = {spot: known for spot, known in self.parameters_of.items() if not below(spot)}
        for txn in self.txns.values():
            txn.components = {component: write_id for component, write_id in txn.components.items() if not below(component.place)}
        self.completed = [completed for completed in self.completed if not below(completed.place)]
        self.queue = [request for request in self.queue if not below(request[0])]
        if not where.partition:
            self.write_ids = {spot: _anew(ids) if below(spot) else ids for spot, ids in self.write_ids.items()}

    def rename(self, where, name):
        """Rename a table with its write ids, components, locks and committed writes; nobody else may have a lock there."""
        self._require_unlocked(where)
        def moved(spot):
            return spot._replace(table=name) if spot.whole_table == where else spot
        self.parameters_of = {moved(spot): known for spot, known in self.parameters_of.items()}
        marks = {spot: _anew(ids) for spot, ids in self.write_ids.items() if spot == where}
        self.write_ids = marks | {moved(spot): ids for spot, ids in self.write_ids.items()}
        for txn in self.txns.values():
            txn.components = {component._replace(place=moved(component.place)): known for component, known in txn.components.items()}
        for row in self.locks:
            row.place = moved(row.place)
        self.write_set = [write._replace(place=moved(write.place)) for write in self.write_set]
        self.completed = [completed._replace(place=moved(completed.place)) for completed in self.completed]

    def _require_unlocked(self, where):
        """Require that nobody else has a lock. An exclusive lock in a transaction without writes there is the caller's: Hive has it when it drops."""
        def writes(row):
            return any(component.place.db == row.place.db and row.place.table in {"", component.place.table}
                       for component in self.txns[row.txn_id].components)
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
        """Return the changes of the commit in the catalog. Raises if any of them cannot be made."""
        changes = []
        last = request.replLastIdInfo
        if last is not None:
            places = [Place(last.database), *([place(last.database, last.table)] if last.table else []),
                      *(place(last.database, last.table, partition) for partition in last.partitionList or ())]
            missing = [spot for spot in places if spot not in self.parameters_of]
            if missing:
                raise internal("Cannot note the replication id")
            changes += [(self.parameters_of[spot], "repl.last.id", str(last.lastReplId)) for spot in places]
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
        """Whether an acquired lock of any of these kinds of the transaction covers the component (TXN-31)."""
        return any(row.txn_id == txn.id and row.acquired_at is not None and row.kind in kinds
                   and _named(row.place) == component.place[:len(_named(row.place))] for row in self.locks)


def _anew(ids):
    """Return the state that a name keeps when its table goes: its ids go on (ADR 0037)."""
    return WriteIds(ids.next, ids.next - 1)


def _named(where):
    return tuple(part for part in where if part)

