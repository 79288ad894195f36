"""SHOW COMPACTIONS as the bytes that go to clients: a trigger keeps them beside each row (migration 0033)."""

from metastore.compaction.queue.rules.requests import OLD_CLIENT_TYPES
from metastore.compaction.queue.store.requests import Filter, shown
from metastore.db.engine import Database


def select_shown_wires(db: Database, wanted: Filter, *, is_old_client: bool) -> tuple[int, bytes]:
    """How many they are, and the structs; an old client does not know every type."""
    rows, order, values = shown(wanted, "wire")
    count, encoded = db.binary(
        f"SELECT int4send(count(*)::int), coalesce(string_agg(wire, ''::bytea ORDER BY {order}), ''::bytea) "
        f"FROM ({rows}) AS shown WHERE %s OR type = ANY(%s)",
        [*values, not is_old_client, [str(kind) for kind in OLD_CLIENT_TYPES]],
    )
    return int.from_bytes(count), encoded
