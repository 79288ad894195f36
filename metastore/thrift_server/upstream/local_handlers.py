"""Handlers for calls that are answered here in another way because the catalog is elsewhere (ADR 50)."""

from __future__ import annotations

from typing import NoReturn

from metastore.config import Settings
from metastore.config.settings import concept_of
from metastore.errors import InvalidOperationError
from metastore.file_work import SCHEMES
from metastore.roots import KEY, READABLE
from metastore.thrift_gen.operators import ttypes
from metastore.thrift_server.dispatch.call import Call, PassedOn, immediate, refused, shared
from metastore.thrift_server.handlers.session import SessionHandlers
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.thrift_server.upstream.endpoint import session_of
from metastore.thrift_server.upstream.mirrored_handlers import Forwarding

_NO_STREAMS = (
    "A metastore in front of another one (metastore.upstream.uris) cannot remember which batch of a "
    "streaming query a commit was: the memory goes with the table, which is the other's"
)

_OURS = {"txns", "locks", "compaction", "planner", "clients"}
"""The concepts whose settings this service answers; the upstream answers all others."""
_OUR_KEYS = {KEY, READABLE, SCHEMES}
"""The keys about files that our own processes may read: the upstream does not know them."""


class UpstreamSessionHandlers:
    """The call set_ugi, recorded here and sent first on the client's upstream connections, and the settings of both."""

    def __init__(self, settings: Settings, forwarding: Forwarding, limits: AddressLimits | None = None) -> None:
        """Prepare the handlers.

        ``settings``: of this service; ``forwarding``: passes on; ``limits``: as for `SessionHandlers`.
        """
        self._own, self._forwarding = SessionHandlers(settings, limits), forwarding

    @immediate
    @shared
    def set_ugi(self, call: Call, user_name: str | None, group_names: list[str] | None) -> list[str]:
        """Record the user that the client gives, here and for the upstream; a proven identity stays, there as well."""
        if call.connection.identity.user is None:
            session_of(call.connection).name(call.raw)
        return self._own.set_ugi(call, user_name, group_names)

    @immediate
    def metastore_act_for(self, call: Call, user: str | None, address: str | None) -> None:
        """Switch a planner's connection to its caller, here and at the upstream."""
        self._own.metastore_act_for(call, user, address)

    @shared
    def get_config_value(self, call: Call, name: str | None, default: str | None) -> str | PassedOn:
        """Return our own value for transactions, locks and the planner; for other keys, the upstream's."""
        if concept_of(name) in _OURS or name in _OUR_KEYS:
            return self._own.get_config_value(call, name, default)
        return PassedOn(*self._forwarding.of(call)())


class UpstreamTableHandlers:
    """The calls that only the catalog could answer."""

    @immediate
    def metastore_table_at(self, _call: Call, _place: str | None) -> str:
        """Return "": locations of tables are not known here."""
        return ""


class UpstreamStreamHandlers:
    """The commits of batches, which need the catalog here."""

    @refused("the memory of a batch goes with the table, which is the upstream's")
    def metastore_stream_positions(self, _call: Call, *_: object) -> NoReturn:
        """Refuse: streams are not known here."""
        raise InvalidOperationError(_NO_STREAMS)

    @refused("the memory of a batch goes with the table, which is the upstream's")
    def metastore_commit_batch(self, _call: Call, _request: ttypes.CommitBatchRequest | None) -> NoReturn:
        """Refuse: nothing was committed."""
        raise InvalidOperationError(_NO_STREAMS)
