"""Locks for changes of definitions, without a transaction; the caller sets the patience."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from metastore.acid_tables.table import AcidTable
from metastore.client import TxnManager
from metastore.client.lock_plan import Kind, Output, statement_locks, target_of
from metastore.planner.call import PlannerCall
from metastore.planner.transactions import Within

_PATIENCE_S = 60


@contextmanager
def alone(call: PlannerCall, table: AcidTable) -> Iterator[None]:
    """Keep readers and writers out of the table inside the block. Raises: LockNotAcquiredError."""
    with locked(call, table, Kind.EXCLUSIVE_DDL):
        yield


@contextmanager
def locked(call: PlannerCall, table: AcidTable, kind: Kind) -> Iterator[None]:
    """Lock the table inside the block, in the caller's name. Raises: LockNotAcquiredError."""
    patience = timedelta(seconds=call.body.number("wait_s", _PATIENCE_S))
    manager = TxnManager(call.client, wait=Within(patience=patience), host=call.body.text("host", "") or None)
    wanted = statement_locks([], [Output(target_of(table), kind)], call.settings.modes)
    user = call.user or call.body.text("user", call.client.user)
    with manager.locked(wanted, user=user, agent=call.body.text("agent", "planner")):
        yield
