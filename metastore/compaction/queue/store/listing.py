"""SHOW COMPACTIONS as the bytes that go to clients: a trigger keeps them beside each row (`wire.sql`)."""

from metastore.compaction.queue.rules.requests import OLD_CLIENT_TYPES
from metastore.compaction.queue.store.requests import Filter, shown
from metastore.db.wires import SortedList


def list_of(wanted: Filter, *, is_old_client: bool) -> SortedList:
    """Return the wanted part of the queue and the history; an old client does not know every type."""
    rows, order, values = shown(wanted, "wire")
    known = [str(kind) for kind in OLD_CLIENT_TYPES]
    return SortedList(
        "wire", f"({rows}) AS shown WHERE (%s OR type = ANY(%s))", order, [*values, not is_old_client, known]
    )
