"""Usage of this process by the clients of an address, and its limits.

Rules: an address is an IPv4 address or a /64 network of IPv6, whose holder chooses the rest. Exempt addresses are not
counted, and none are without limits. Calls that end an object, or keep it alive, are refused last. All state is in
memory, cheap enough for every call; the caller passes the time.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network

import structlog

from metastore.config import LimitSettings
from metastore.errors import LimitReachedError

LAST_REFUSED = frozenset(("commit_txn", "abort_txn", "abort_txns", "unlock", "heartbeat", "heartbeat_txn_range"))
KINDS = ("connections", "open_txns", "locks", "requests", "buffered")
_WARN_EVERY_SECONDS = 10.0
_MEMORY_SECONDS = 2.0
"""The time for which an address without connections is remembered: a reconnection must not begin a new second."""
_log = structlog.get_logger("metastore.server")


class HeldIds:
    """The ids of one kind that an address got and may still have, each with its weight."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.total = 0

    def add(self, counts: Mapping[int, int]) -> None:
        """Record ids that the address got."""
        self.counts.update(counts)
        self.total += sum(counts.values())

    def keep(self, checked: Collection[int], present: Mapping[int, int]) -> None:
        """Drop the ``checked`` ids that are not ``present`` any more; ids that were added meanwhile stay."""
        for number in checked:
            if number not in present:
                self.counts.pop(number, None)
        self.total = sum(list(self.counts.values()))


class Usage:
    """The usage of an address."""

    __slots__ = ("address", "connections", "held", "left_at", "spare", "spared_at", "warned")

    def __init__(self, address: str, spare: float, now: float) -> None:
        self.address = address
        self.connections = 0
        self.left_at = now  # The time when its last connection was closed.
        self.spare, self.spared_at = spare, now  # The calls that it may make at once, and as of when.
        self.held = {"open_txns": HeldIds(), "locks": HeldIds()}
        self.warned: dict[str, float] = {}


class AddressLimits:
    """Every address with connections, or with transactions or locks that may still be there."""

    def __init__(self, settings: LimitSettings, forget_after: timedelta = timedelta(0)) -> None:
        """Prepare the limits.

        ``forget_after``: the time for which an address without connections keeps its counts. After it, a transaction or
        lock without heartbeats has expired.
        """
        self.settings = settings
        self.on = any(getattr(settings, kind) for kind in KINDS)
        self._forget_after = max(forget_after.total_seconds(), _MEMORY_SECONDS)
        self._usages: dict[str, Usage] = {}
        self.reached = dict.fromkeys(KINDS, 0)

    def usage(self, host: str, now: float) -> Usage | None:
        """Return the usage of a host's address; None: it is not limited."""
        address = self._limited(host) if self.on else None
        if address is None:
            return None
        if address not in self._usages:
            self._usages[address] = Usage(address, self.settings.requests, now)
        return self._usages[address]

    def room(self, host: str, now: float) -> bool:
        """Return True if another connection may come from the host."""
        usage = self.usage(host, now)
        if usage is not None and 0 < self.settings.connections <= usage.connections:
            self.reach(usage, "connections", now)
            return False
        return True

    def arrived(self, host: str, now: float) -> Usage | None:
        """Count a connection; return the usage of its address."""
        usage = self.usage(host, now)
        if usage is not None:
            usage.connections += 1
        return usage

    @staticmethod
    def left(usage: Usage | None, now: float) -> None:
        """Record that a connection was closed."""
        if usage is not None:
            usage.connections -= 1
            usage.left_at = now

    def refusal(self, usage: Usage, method: str, now: float) -> LimitReachedError | None:
        """Count a call; return why it is refused, None if it is not."""
        most = self.settings.requests
        if not most:
            return None
        usage.spare = min(most, usage.spare + (now - usage.spared_at) * most)
        usage.spared_at = now
        if usage.spare - 1 >= (-most if method in LAST_REFUSED else 0):
            usage.spare -= 1
            return None
        self.reach(usage, "requests", now)
        return LimitReachedError(
            f"{method} is refused: {usage.address} makes more than {most} calls a second "
            "(metastore.limit.requests.per.second). Make them more slowly."
        )

    def reach(self, usage: Usage, kind: str, now: float) -> None:
        """Count that a limit was reached, with a line in the log every few seconds."""
        self.reached[kind] += 1
        if now - usage.warned.get(kind, -_WARN_EVERY_SECONDS) >= _WARN_EVERY_SECONDS:
            usage.warned[kind] = now
            _log.warning("limit_reached", address=usage.address, limit=kind, most=getattr(self.settings, kind))

    def sweep(self, now: float) -> None:
        """Forget addresses that have left long enough ago."""
        for usage in list(self._usages.values()):
            patience = self._forget_after if any(held.counts for held in usage.held.values()) else _MEMORY_SECONDS
            if not usage.connections and now - usage.left_at > patience:
                del self._usages[usage.address]

    def _limited(self, host: str) -> str | None:
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return None
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        if any(address in network for network in self.settings.exempt):
            return None
        return str(ip_network((address, 64), strict=False)) if isinstance(address, IPv6Address) else str(address)
