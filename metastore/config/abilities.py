"""Settings for the clients that get transactional tables (ADR 67).

Rule: a client that may not be able to read them is refused unless the operator allows it.
"""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from metastore.config import values
from metastore.config.keys import key

Clients = tuple[str | IPv4Network | IPv6Network, ...]


@dataclass(frozen=True)
class AbilitySettings:
    """Abilities that clients are assumed to have."""

    check: bool = key(
        values.FLAG,
        "hive.metastore.client.capability.check",
        "true",
        "Refuse a transactional table to clients that have not said that they can handle it: they would see no rows, "
        "and strand what they write. Hive: refuses insert-only tables only.",
    )
    trusted: Clients = key(
        values.CLIENTS,
        "metastore.client.capability.trusted",
        "",
        "Users, addresses and networks of clients that can handle transactional tables although they cannot say so: "
        "Hive 2.3, but nothing else that has its client (Spark). Hive: no such key.",
    )
    doubted: Clients = key(
        values.CLIENTS,
        "metastore.client.capability.doubted",
        "",
        "Users, addresses and networks of engines that cannot although their Hive client says INSERT_ONLY_TABLES: "
        "Spark with spark.sql.hive.metastore.version 3 or later. Abilities that a client names still count. Hive: no "
        "such key.",
    )
