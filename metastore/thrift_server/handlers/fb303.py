"""The fb303 interface: the questions of health checks."""

from metastore.telemetry.calls import CallStats
from metastore.thrift_gen.fb303.ttypes import fb_status
from metastore.thrift_server.dispatch.call import Call, immediate

NAME = "new db based metaserver"
"""The answer of Hive's own server; tools compare it."""


class Fb303Handlers:
    """Answers from memory. ``started``: seconds since the epoch; ``version``: of Hive, whose dialect is spoken."""

    def __init__(self, stats: CallStats, started: int, version: str = "") -> None:
        self._stats, self._started, self._version = stats, started, version

    @immediate
    def getName(self, _call: Call) -> str:
        """Return the name of the service."""
        return NAME

    @immediate
    def getVersion(self, _call: Call) -> str:
        """Return Hive's version of the interface, not that of this product."""
        return self._version

    @immediate
    def getStatus(self, _call: Call) -> int:
        """Return ALIVE, since a dead server would not answer."""
        return int(fb_status.ALIVE)

    @immediate
    def getStatusDetails(self, _call: Call) -> str:
        """Return an empty text."""
        return ""

    @immediate
    def aliveSince(self, _call: Call) -> int:
        """Return the server's start, in seconds since the epoch."""
        return self._started

    @immediate
    def getCounters(self, _call: Call) -> dict[str, int]:
        """Return the numbers of answered calls, by method."""
        return {f"calls.{method}": count for method, count in self._stats.counts().items()}

    @immediate
    def getCounter(self, call: Call, key: str) -> int:
        """Return a counter, 0 if there is none of this name."""
        return self.getCounters(call).get(key, 0)

    @immediate
    def getOptions(self, _call: Call) -> dict[str, str]:
        """Return no options: none can be changed while the server runs."""
        return {}

    @immediate
    def getOption(self, _call: Call, _key: str) -> str:
        """Return an empty option: there are none."""
        return ""
