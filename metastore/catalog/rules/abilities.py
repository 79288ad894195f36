"""Abilities of clients: the clients that may get a transactional table, and the refusal that all others get.

Rule: a client that cannot read such a table sees none of its rows, or rows that were deleted, and other readers miss
what it writes. So the server refuses the table before the client begins. The server believes what a client says
(CLIENT-11): ``processorCapabilities`` name each ability; INSERT_ONLY_TABLES alone comes from Hive 3 and 4 and from
Trino, which have both; a client that says nothing has no ability. An operator can override this by user or by address.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address

from metastore.acid.table_kinds import TableKind
from metastore.ids import TableName

Network = IPv4Network | IPv6Network


_NONE: frozenset[TableKind] = frozenset()
_EITHER = frozenset(("CONNECTORREAD", "CONNECTORWRITE", "MANAGERAWMETADATA"))
_WORDS: Mapping[TableKind, frozenset[str]] = {
    TableKind.FULL_ACID: _EITHER | {"HIVEFULLACIDREAD", "HIVEFULLACIDWRITE"},
    TableKind.INSERT_ONLY: _EITHER | {"HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE"},
}
_ALL = frozenset(_WORDS)


@dataclass(frozen=True)
class Said:
    """Statements of a client about itself, sent with a call."""

    insert_only_tables: bool = False
    """Its ``capabilities`` have INSERT_ONLY_TABLES."""
    processor: tuple[str, ...] = ()
    """Its ``processorCapabilities``."""


@dataclass(frozen=True)
class Client:
    """The identity of a client."""

    user: str | None
    host: str


def is_named(client: Client, clients: Collection[str | Network]) -> bool:
    """Return True if a list of users, addresses and networks contains this client."""
    if client.user in clients:
        return True
    try:
        address = ip_address(client.host.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return any(not isinstance(each, str) and address in each for each in clients)


def abilities(said: Said, *, trusted: bool = False, doubted: bool = False) -> frozenset[TableKind]:
    """Return the kinds of transactional tables that a client can handle.

    ``trusted``: the client has every ability, whatever it says. ``doubted``: only abilities that it names count, since
    its Hive client claims more than the engine around it can do.
    """
    if trusted:
        return _ALL
    if said.processor:
        named = frozenset(word.upper() for word in said.processor)
        return frozenset(kind for kind, words in _WORDS.items() if words & named)
    return _ALL if said.insert_only_tables and not doubted else _NONE


def refusal(table: TableName, kind: TableKind) -> str:
    """Return the message that refuses a table to a client."""
    return (
        f"{table} is a transactional table ({kind}), and this client has not said that it can handle such tables: it "
        "would see no rows or wrong ones, and others would not see what it writes. In a Spark that has the ACID catalog"
        " this was df.write.saveAsTable, which asks past it: use writeTo or insertInto in place of saveAsTable,"
        f' as in df.writeTo("{table.db}.{table.table}").append(). In another Spark use acid(spark) or the ACID catalog'
        " (metastore.spark.configure, or spark.sql.catalog.spark_catalog and spark.sql.extensions); else Hive 3 or"
        " later, or Trino. Hive 2.3: SET "
        "metaconf:hive.metastore.client.capability.check=false, or have its user or address listed in the metastore's "
        "setting metastore.client.capability.trusted."
    )
