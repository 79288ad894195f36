"""Emptying of transactional tables: an empty base of the caller's transaction hides the files, which readers keep.

Rule: such a base may only count if its transaction commits. So the transaction's components say that it writes, which
Hive's TRUNCATE does not do (its lock has the operation NO_TXN): without them an aborted transaction would be forgotten
at once, and its base would be valid. A base that was written after its transaction had ended is removed again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from metastore.catalog.service.directories import Directories
from metastore.catalog.store import acid_history
from metastore.db.engine import Database as Postgres
from metastore.db.engine import PgTx
from metastore.errors import MetaError
from metastore.ids import TableName
from metastore.txns.core import store as txn_store
from metastore.txns.core.rules import Component, Operation, TxnState, required_open


@dataclass(frozen=True)
class EmptyBases:
    """A writer of empty bases, in two steps.

    ``announce`` runs in the PostgreSQL transaction of the call, ``write`` behind its end.
    """

    db: Postgres
    directories: Directories

    def announce(self, pg: PgTx, name: TableName, write_id: int, partitions: list[str]) -> int:
        """Record that the transaction of the write id rewrites these partitions (``""``: the table).

        Return the transaction's id.
        Raises: MetaError unless it is open.
        """
        txn_id = acid_history.select_owner(pg, name, write_id)
        if txn_id is None:
            raise MetaError(f"{name} cannot be emptied with write id {write_id}: no transaction has it, allocate one")
        [record] = txn_store.lock_for_adding(pg, [txn_id]).values() or [None]
        refusal = required_open(txn_id, record.state if record else None)
        if refusal is not None:
            raise MetaError(f"{name} cannot be emptied with write id {write_id}: {refusal}")
        txn_store.insert_components(
            pg, [Component(txn_id, name, partition, Operation.UPDATE, write_id) for partition in partitions]
        )
        return txn_id

    def write(self, name: TableName, txn_id: int, write_id: int, locations: list[str]) -> None:
        """Write the bases. Raises: MetaError, also when the transaction has ended meanwhile; then no base is left."""
        for location in locations:
            self.directories.write_empty_base(location, write_id)
        states: Mapping[int, TxnState] = txn_store.select_states(self.db, [txn_id])
        refusal = required_open(txn_id, states.get(txn_id))
        if refusal is not None:
            for location in locations:
                self.directories.remove_base(location, write_id)
            raise MetaError(f"{name} was not emptied: {refusal}")
