"""A metastore on a few pages: what docs/spec says of transactions, write ids and locks, in memory, with nothing to go wrong in between.

It answers the Thrift calls with Thrift's own structs and exceptions, as a client gets them, and shares no rule with the
service: a wrong rule there shows as a difference. No SQL, no batches, no isolation levels.
"""

from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.model.catalog import Catalog
from tests.support.model.house import House
from tests.support.model.locks import Locks
from tests.support.model.state import EPOCH_MS
from tests.support.model.txns import Txns
from tests.support.model.write_ids import Tables


class Model(Txns, Tables, Locks, Catalog, House):
    """Everything at once."""

    types = ttypes
    beginning = EPOCH_MS

    def __init__(self, settings=None):
        settings = settings or {}
        self.max_open_txns = int(settings.get("hive.max.open.txns", 100_000))
        self.max_batch = int(settings.get("hive.txn.max.open.batch", 1000))
        self.ends_deadlocks = settings.get("metastore.txn.deadlock.detector.enabled", "true") == "true"
        self.now = EPOCH_MS
        self.next_txn = self.next_lock = 1
        self.refusing = False
        self.txns, self.replicated = {}, {}
        self.write_set, self.completed, self.queue = [], [], []
        self.write_ids, self.rebuilds, self.parameters_of = {}, {}, {}
        self.locks = []
        self.victims = {}

    def components(self):
        """(transaction, place, letter, write id)."""
        return {(txn.id, str(component.place), component.letter, write_id)
                for txn in self.txns.values() for component, write_id in txn.components.items()}

    def completed_components(self):
        """(transaction, place, write id, whether it changed rows)."""
        return {(completed.txn_id, str(completed.place), completed.write_id, completed.changed_rows) for completed in self.completed}

    def writes(self):
        """(transaction, place, point of its commit, letter) that later commits are checked against."""
        return {(write.txn_id, str(write.place), write.commit_id, write.letter) for write in self.write_set}

    def abort_code(self, txn_id):
        return self.txns[txn_id].code

    def compactions(self):
        return [(str(where), kind, state) for where, kind, state in self.queue]
