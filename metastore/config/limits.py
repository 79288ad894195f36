"""Limits for the clients of an address: connections, open transactions, locks, calls, memory.

Rule: there is no limit by default; each server process counts for itself (ADR 42).
"""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from metastore.config import values
from metastore.config.keys import key
from metastore.config.values import integer

_COUNT = integer(0)


@dataclass(frozen=True)
class LimitSettings:
    """Limits for each client address: an IPv4 address, or a /64 network of IPv6; 0: none."""

    connections: int = key(
        _COUNT,
        "metastore.limit.connections",
        "0",
        "Most connections of one client address (an IPv4 address, or an IPv6 network /64) to one server process; those "
        "above it are closed at once, with a line in the log. 0: no limit, as for the other metastore.limit keys. "
        "Hive: no such key.",
    )
    open_txns: int = key(
        _COUNT,
        "metastore.limit.open.txns",
        "0",
        "open_txns is refused to a client address above so many open transactions that it got from this process. Hive: "
        "no such key.",
    )
    locks: int = key(
        _COUNT,
        "metastore.limit.locks",
        "0",
        "lock is refused to a client address above so many locks, held and waited for, that it asked this process for. "
        "Hive: no such key.",
    )
    requests: int = key(
        _COUNT,
        "metastore.limit.requests.per.second",
        "0",
        "Calls of a client address above this rate are refused; calls that commit, abort, unlock or keep alive only "
        "above twice as many within a second. Hive: no such key.",
    )
    buffered: int = key(
        values.SIZE,
        "metastore.limit.buffered",
        "0",
        "Bytes of half requests, waiting requests and half answers of one client address, beyond which its connections "
        "are closed that have not moved for longest. Hive: no such key.",
    )
    exempt: tuple[IPv4Network | IPv6Network, ...] = key(
        values.NETWORKS,
        "metastore.limit.exempt",
        "127.0.0.0/8,::1/128",
        "Addresses and networks that are not limited: this machine, load balancers behind which all clients have one "
        "address. Hive: no such key.",
    )
