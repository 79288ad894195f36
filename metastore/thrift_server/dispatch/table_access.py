"""Who gets a transactional table; `metastore.catalog.rules.abilities` has the rule.

Rule: the calls by which an engine begins to read or to write a table pass here. Names, lists and drops do not, so that
everybody can see what there is.
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
"""What setMetaConf may set for one connection, as with Hive."""


class TableAccess:
    """Lets those pass who can handle a table."""

    def __init__(self, settings: AbilitySettings, stats: TableStats) -> None:
        """``stats``: where refusals are counted."""
        self._settings, self._stats = settings, stats

    def require(self, call: Call, table: TableName, parameters: Parameters, said: Said) -> None:
        """Raise MetaError, with what to do, if the client cannot handle the table."""
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
    """Return what a request that has such fields says of its client."""
    values = request.capabilities.values if request.capabilities is not None else ()
    return Said(
        ttypes.ClientCapability.INSERT_ONLY_TABLES in (values or ()), tuple(request.processorCapabilities or ())
    )
