"""The fb303 interface: the questions of health checks."""

from metastore.errors import MetaError, NoAnswerError
from metastore.telemetry.calls import CallStats
from metastore.thrift_gen.fb303.ttypes import fb_status
from metastore.thrift_server.dispatch.call import Call, immediate

NAME = "new db based metaserver"
VERSION = "3.0"
"""The answers of Hive's own server; tools compare them."""
_MOST_OPTIONS, _LONGEST_OPTION = 100, 1000


class Fb303Handlers:
    """Answers from memory. ``started``: seconds since the epoch."""

    def __init__(self, stats: CallStats, started: int) -> None:
        self._stats, self._started = stats, started
        self._options: dict[str, str] = {}

    @immediate
    def getName(self, _call: Call) -> str:
        """Return the name of the service."""
        return NAME

    @immediate
    def getVersion(self, _call: Call) -> str:
        """Return Hive's version of the interface, not that of this product."""
        return VERSION

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
    def getCpuProfile(self, _call: Call, _seconds: int | None) -> str:
        """Return an empty text: nothing is profiled."""
        return ""

    @immediate
    def setOption(self, _call: Call, key: str | None, value: str | None) -> None:
        """Keep an option, which changes nothing, until this process ends. Raises: MetaError for too much of it."""
        if key is None or value is None:
            raise MetaError("An option has a key and a value")
        if len(key) + len(value) > _LONGEST_OPTION or len(self._options.keys() | {key}) > _MOST_OPTIONS:
            raise MetaError(f"Options are at most {_MOST_OPTIONS}, each of at most {_LONGEST_OPTION} characters")
        self._options[key] = value

    @immediate
    def getOptions(self, _call: Call) -> dict[str, str]:
        """Return the options that this process keeps."""
        return self._options

    @immediate
    def getOption(self, _call: Call, key: str | None) -> str:
        """Return an option. Raises: NoAnswerError for one that nobody has set."""
        if key not in self._options:
            raise NoAnswerError(f"There is no option {key}")
        return self._options[key]
