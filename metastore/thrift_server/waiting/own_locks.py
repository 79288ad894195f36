"""The caller's own locks in an exclusive change."""

from typing import Any

from metastore.catalog.rules.tables import is_true
from metastore.locks.rules import Changer
from metastore.thrift_gen.hive_metastore.constants import TXN_ID
from metastore.thrift_server.convert.catalog import context_of
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.waiting.lock_connections import LockConnections

_SERVER = "hive"
"""The user whose trash gets the data that a client without a name drops."""


class OwnLocks:
    """The caller of a change, by its locks.

    A transaction is the caller's if the call names it, as in Hive 4; a lock is the caller's if its connection is the
    call's.
    """

    def __init__(self, holders: LockConnections | None = None) -> None:
        """Prepare the look-up. ``holders``: knows the connection of each lock."""
        self._holders = holders

    def of(self, call: Call, environment: Any = None, txn_id: int | None = None) -> Changer:
        """Return the caller. The call's EnvironmentContext, or a field of the request, may name its transaction."""
        context = context_of(environment)
        named = context.get(TXN_ID, "")
        txn_ids = {int(named)} if named.isdecimal() else {txn_id} if txn_id else set()
        locks = frozenset[int]() if self._holders is None else self._holders.of(call.connection)
        trash_of = None if is_true(context.get("ifPurge")) else call.connection.user or _SERVER
        return Changer(frozenset(txn_ids), locks, trash_of)


STRANGERS = OwnLocks()
"""The look-up for processes without knowledge of connections."""
