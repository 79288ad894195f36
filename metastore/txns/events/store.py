"""Rows of the notification log. Triggers write them (`log.sql`), in the PostgreSQL transaction of the change."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from metastore.db import wires
from metastore.db.engine import Database, PgTx
from metastore.db.pieces import Sizes
from metastore.db.wires import ThriftField, WireList, WireType

BATCH = 10_000

_SWITCHES = (("txns", "txns_opened"), ("txns", "txns_ended"), ("txn_write_ids", "write_ids_allocated"))


class EventFilter(NamedTuple):
    """A filter of events: behind one id, and up to another; "" and empty: all."""

    after_id: int
    up_to: int | None = None
    types: Collection[str] = ()
    not_types: Collection[str] = ()
    catalog: str = ""
    db: str = ""
    tables: Collection[str] = ()


SIZES = Sizes(1000, 5000, 5000)
"""Of the pieces in which events are read."""
_MESSAGE_FORMAT = "json-0.2"
"""Plain JSON, which readers of every version understand."""
_EVENT = wires.struct(
    [
        ThriftField(1, WireType.I64, "event_id"),
        ThriftField(2, WireType.I32, "floor(date_part('epoch', at))::int"),
        ThriftField(3, WireType.TEXT, "type"),
        ThriftField(4, WireType.TEXT, "db", optional=True),
        ThriftField(5, WireType.TEXT, '"table"', optional=True),
        ThriftField(6, WireType.TEXT, "message"),
        ThriftField(7, WireType.TEXT, f"'{_MESSAGE_FORMAT}'::text"),
        ThriftField(8, WireType.TEXT, "catalog", optional=True),
    ]
)
"""A row of the log as clients get it."""


def switch(db: Database, *, on: bool) -> bool:
    """Switch the triggers on or off; return whether that is a change. Only a change waits for present writers."""
    rows = db.once(
        "SELECT tgrelid::regclass::text, tgname, tgenabled <> 'D' FROM pg_trigger WHERE tgname = ANY(%s)",
        ([trigger for _, trigger in _SWITCHES],),
    )
    wrong = [(table, trigger) for table, trigger, enabled in rows if enabled != on]
    if wrong:
        db.once(
            "; ".join(
                f"ALTER TABLE {table} {'ENABLE' if on else 'DISABLE'} TRIGGER {trigger}" for table, trigger in wrong
            )
        )
    return bool(wrong)


def is_on(db: Database) -> bool:
    """Return True if the triggers run."""
    [(enabled,)] = db.once("SELECT tgenabled <> 'D' FROM pg_trigger WHERE tgname = 'txns_ended'")
    return bool(enabled)


def listed_events(wanted: EventFilter) -> WireList:
    """Return the wanted events, ascending, as bytes for clients."""
    condition, parameters = _condition(wanted)
    return WireList(f"notification_log WHERE {condition}", parameters, _EVENT, ["event_id"])


def count_events(db: Database, wanted: EventFilter, limit: int) -> int:
    """Count the wanted events, up to ``limit`` unless negative."""
    return listed_events(wanted).count(db.once, limit)


def select_last_id(db: Database) -> int:
    """Return the id of the last event, even if it was removed; 0 if there was none."""
    [(last,)] = db.once("SELECT coalesce((SELECT last_event_id FROM notification_counter), 0)")
    return int(last)


def delete_events(pg: PgTx, before: datetime, limit: int = BATCH) -> int:
    """Remove the oldest events from before an instant, up to a limit."""
    pg.sql(
        """
        DELETE FROM notification_log WHERE event_id = ANY(ARRAY(
            SELECT event_id FROM (SELECT event_id, at FROM notification_log ORDER BY event_id LIMIT %s) AS oldest
            WHERE at < %s))""",
        (limit, before),
    )
    return pg.rowcount


def _condition(wanted: EventFilter) -> tuple[str, list[object]]:
    """Return the filter as SQL with its parameters."""
    conditions = {
        "event_id <= %s": wanted.up_to,
        "type = ANY(%s::text[])": list(wanted.types) or None,
        "type <> ALL(%s::text[])": list(wanted.not_types) or None,
        "catalog = %s": wanted.catalog or None,
        "db = %s": wanted.db or None,
        '"table" = ANY(%s::text[])': list(wanted.tables) or None,
    }
    set_ones = {"event_id > %s": wanted.after_id} | {
        condition: value for condition, value in conditions.items() if value is not None
    }
    return " AND ".join(set_ones), list(set_ones.values())
