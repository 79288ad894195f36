"""Session calls: a client's statements about itself, and its questions about settings, answered from memory.

Rule: a setting made here belongs to the connection and ends with it.
"""

import re
from time import monotonic

from metastore.config import Settings
from metastore.errors import ConfigValueSecurityError, MetaError
from metastore.thrift_server.auth.identity import Identity, IdentityProof
from metastore.thrift_server.dispatch.call import Call, immediate
from metastore.thrift_server.dispatch.table_access import CHECK
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.thrift_server.loop.client_session import require_short

_READABLE = re.compile(r"(hive|hdfs|mapred|metastore)")
_SESSION_KEYS = {
    "metastore.try.direct.sql": "true",
    "metastore.try.direct.sql.ddl": "true",
    "metastore.client.socket.timeout": "600s",
    "metastore.partition.name.whitelist.pattern": "",
    CHECK: "true",
    "metastore.disallow.incompatible.col.type.changes": "true",
    "metastore.expression.proxy": "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore",
}
"""The keys that setMetaConf may change, with Hive's defaults."""
_PROXIES = {
    _SESSION_KEYS["metastore.expression.proxy"],
    "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy",
}
"""The writers of partition expressions: Hive's compiler writes Kryo, MSCK REPAIR text. Both are always read."""

_LONGEST_CALLER = 1000


class SessionHandlers:
    """The calls set_ugi, settings for clients, and calls that Hive's clients make out of habit."""

    def __init__(self, settings: Settings, limits: AddressLimits | None = None) -> None:
        """Prepare the handlers. ``limits``: of addresses, which follow a planner's caller."""
        self._settings, self._limits = settings, limits

    @immediate
    def metastore_act_for(self, call: Call, user: str | None, address: str | None) -> None:
        """Switch a planner's connection to its caller, with the caller's limits.

        Raises: MetaError for an invalid address.
        """
        caller = _caller(user, address)
        call.connection.act_for(caller, self._limits, monotonic())

    @immediate
    def set_ugi(self, call: Call, user_name: str | None, group_names: list[str] | None) -> list[str]:
        """Record the user that the client gives, unless the connection has a proven user, which stays.

        Without execute.setugi nothing is recorded, and the answer names the user too.
        Raises: MetaError for too long a name.
        """
        groups, proven = list(group_names or ()), call.connection.identity.user
        if not proven and not self._settings.server.execute_setugi:
            return [*groups, user_name or ""]
        if not proven:
            require_short("set_ugi", len(user_name or "") + sum(map(len, groups)))
            call.connection.user, call.connection.groups = user_name, tuple(groups)
        return groups

    @immediate
    def get_config_value(self, _call: Call, name: str | None, default: str | None) -> str:
        """Return the value of a key that clients may read, or their default if it is not set.

        Raises: ConfigValueSecurityError for names outside of Hive's families, and for passwords.
        """
        if name is None:
            return default or ""
        if not _READABLE.match(name):
            raise ConfigValueSecurityError(
                f"For security reasons, the config key {name} cannot be accessed; only keys that begin with hive, "
                "hdfs, mapred or metastore can."
            )
        value = self._settings.lookup(name)
        return value if value is not None else default or ""

    @immediate
    def getMetaConf(self, call: Call, key: str | None) -> str:
        """Return a setting of this connection. Raises: MetaError for a key that Hive does not have."""
        known = _session_key(key)
        if call.connection.metaconf and known in call.connection.metaconf:
            return call.connection.metaconf[known]
        return self._settings.lookup(known) or _SESSION_KEYS[known]

    @immediate
    def setMetaConf(self, call: Call, key: str | None, value: str | None) -> None:
        """Change a setting for this connection. Raises: MetaError for an unknown key or a value of another kind."""
        known = _session_key(key)
        require_short("setMetaConf", len(value or ""))
        before = call.connection.metaconf or {}
        call.connection.metaconf = {**before, known: _session_value(known, value or "", key)}

    @immediate
    def flushCache(self, _call: Call) -> None:
        """Do nothing: no data is cached for a client."""


def _caller(user: str | None, address: str | None) -> Identity:
    if not (address or "").rpartition(":")[0] or len(address or "") + len(user or "") > _LONGEST_CALLER:
        raise MetaError("A caller has an address, HOST:PORT, and perhaps a user, in at most 1000 characters")
    return Identity(user or None, IdentityProof.PLANNER, address or "")


def _session_key(key: str | None) -> str:
    known = (key or "").removeprefix("hive.")
    if known not in _SESSION_KEYS:
        raise MetaError(f"Invalid configuration key {key}")
    return known


def _session_value(known: str, value: str, key: str | None) -> str:
    """Return the value, if the key allows it. ``key``: as it was sent."""
    if _SESSION_KEYS[known] == "true" and value.lower() not in {"true", "false"}:
        raise MetaError(f"Invalid configuration value {value!r} for key {key}: expected true or false")
    if known == "metastore.expression.proxy" and value not in _PROXIES:
        raise MetaError(f"Invalid configuration value {value!r} for key {key}: expected one of {sorted(_PROXIES)}")
    return value
