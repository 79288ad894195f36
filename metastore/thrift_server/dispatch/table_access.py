"""Access to transactional tables; `metastore.catalog.rules.abilities` has the rule.

Rule: the calls by which an engine begins to read or to write a table pass here. Names, lists and drops do not, so that
every client can list all tables.
"""

from typing import Any

from metastore.acid.table_kinds import TableKind, table_kind
from metastore.catalog.model import Parameters
from metastore.catalog.rules.abilities import Client, Said, abilities, is_named, refusal
from metastore.config import AbilitySettings
from metastore.errors import MetaError
from metastore.ids import TableName
from metastore.telemetry.tables import TableStats
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call

CHECK = "metastore.client.capability.check"
"""The key that setMetaConf may set for one connection, as with Hive."""


class TableAccess:
    """A check that clients can handle a table."""

    def __init__(self, settings: AbilitySettings, stats: TableStats) -> None:
        """Prepare the check; ``stats``: counts refusals."""
        self._settings, self._stats = settings, stats

    def require(self, call: Call, table: TableName, parameters: Parameters, said: Said) -> None:
        """Raise MetaError, with the remedy, if the client cannot handle the table."""
        kind = table_kind(parameters)
        if kind is TableKind.PLAIN or not self._checks(call):
            return
        client = Client(call.connection.user, call.connection.host)
        trusted = is_named(client, self._settings.trusted)
        if kind in abilities(said, trusted=trusted, doubted=is_named(client, self._settings.doubted)):
            return
        self._stats.refused.labels(kind.value).inc()
        call.log(table=str(table), kind=kind.value)
        raise MetaError(refusal(table, kind))

    def _checks(self, call: Call) -> bool:
        own = (call.connection.metaconf or {}).get(CHECK)
        return self._settings.check if own is None else own.lower() == "true"


def said_in(request: Any) -> Said:
    """Return the statements about the client in a request that has such fields."""
    values = request.capabilities.values if request.capabilities is not None else ()
    return Said(
        ttypes.ClientCapability.INSERT_ONLY_TABLES in (values or ()), tuple(request.processorCapabilities or ())
    )
