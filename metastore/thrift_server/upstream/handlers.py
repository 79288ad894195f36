"""Calls that are answered here in another way because the catalog is elsewhere (ADR 50)."""

from typing import NoReturn

from metastore.config import Settings
from metastore.errors import InvalidOperationError
from metastore.thrift_gen.operators import ttypes
from metastore.thrift_server.call import Call, immediate, refused, shared
from metastore.thrift_server.handlers.session import SessionHandlers
from metastore.thrift_server.upstream.connecting import session_of

_NO_STREAMS = (
    "A metastore in front of another one (metastore.upstream.uris) cannot remember which batch of a "
    "streaming query a commit was: the memory goes with the table, which is the other's"
)


class UpstreamSessionHandlers:
    """set_ugi: noted here, and said first on the client's connections to the upstream."""

    def __init__(self, settings: Settings) -> None:
        """``settings``: whether what clients say of themselves counts."""
        self._own = SessionHandlers(settings)

    @immediate
    @shared
    def set_ugi(self, call: Call, user_name: str | None, group_names: list[str] | None) -> list[str]:
        """Note who the client says it is, here and for the upstream; a proven identity stays, there as well."""
        session_of(call.connection).name(call.raw)
        return self._own.set_ugi(call, user_name, group_names)


class UpstreamTableHandlers:
    """Questions that the catalog would answer."""

    @immediate
    def metastore_table_at(self, _call: Call, _place: str | None) -> str:
        """Where tables are is not known here."""
        return ""


class UpstreamStreamHandlers:
    """Commits of batches, which need the catalog here."""

    @refused("the memory of a batch goes with the table, which is the upstream's")
    def metastore_stream_positions(self, _call: Call, *_: object) -> NoReturn:
        """Nothing is known of streams."""
        raise InvalidOperationError(_NO_STREAMS)

    @refused("the memory of a batch goes with the table, which is the upstream's")
    def metastore_commit_batch(self, _call: Call, _request: ttypes.CommitBatchRequest | None) -> NoReturn:
        """Refused: nothing was committed."""
        raise InvalidOperationError(_NO_STREAMS)
