"""Which calls go to the upstream: those that no handler is for, also of methods that only the upstream knows."""

from collections.abc import Mapping

from metastore.thrift_server.dispatch.registry import Handler


class Upstreams:
    """See `metastore.thrift_server.loop.message_reader.Routes`."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        """``handlers``: what is answered here."""
        self._handlers = handlers

    def forwards(self, method: str) -> bool:
        """Whether its calls go to the upstream as they are."""
        return method not in self._handlers

    def keeps(self, method: str) -> bool:
        """Whether the bytes of its calls are needed."""
        handler = self._handlers.get(method)
        return handler is None or handler.shared
