"""Rows of the notification log. Triggers write them (migration 0013), in the PostgreSQL transaction of the change."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from metastore.db.engine import Database, PgTx

BATCH = 10_000

_SWITCHES = (("txns", "txns_opened"), ("txns", "txns_ended"), ("txn_write_ids", "write_ids_allocated"))


class Event(NamedTuple):
    """One event; what it is about is empty where it is about no single table. ``message``: JSON."""

    event_id: int
    at: datetime
    type: str
    catalog: str | None
    db: str | None
    table: str | None
    message: str


class EventFilter(NamedTuple):
    """Which events are wanted: behind an id, and up to a second id; "" and empty: all."""

    after_id: int
    up_to: int | None = None
    types: Collection[str] = ()
    not_types: Collection[str] = ()
    catalog: str = ""
    db: str = ""
    tables: Collection[str] = ()


_WANTED = """
    event_id > %(after_id)s AND (%(up_to)s::bigint IS NULL OR event_id <= %(up_to)s)
    AND (%(types)s::text[] = '{}' OR type = ANY(%(types)s::text[])) AND type <> ALL(%(not_types)s::text[])
    AND (%(catalog)s = '' OR catalog = %(catalog)s) AND (%(db)s = '' OR db = %(db)s)
    AND (%(tables)s::text[] = '{}' OR "table" = ANY(%(tables)s::text[]))"""


def switch(db: Database, *, on: bool) -> bool:
    """Let the triggers run, or not; whether that is a change. Waits for the writers of the moment only to change it."""
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
    """Whether the triggers run."""
    [(enabled,)] = db.once("SELECT tgenabled <> 'D' FROM pg_trigger WHERE tgname = 'txns_ended'")
    return bool(enabled)


def select_events(db: Database, wanted: EventFilter, limit: int | None) -> list[Event]:
    """The wanted events, ascending."""
    rows = db.once(
        f'SELECT event_id, at, type, catalog, db, "table", message FROM notification_log WHERE {_WANTED}'
        " ORDER BY event_id LIMIT %(limit)s",
        {**_parameters(wanted), "limit": limit},
    )
    return [Event(*row) for row in rows]


def count_events(db: Database, wanted: EventFilter, limit: int | None) -> int:
    """How many events are wanted, at most ``limit``."""
    [(count,)] = db.once(
        f"SELECT count(*) FROM (SELECT FROM notification_log WHERE {_WANTED} LIMIT %(limit)s) AS wanted",
        {**_parameters(wanted), "limit": limit},
    )
    return int(count)


def select_last_id(db: Database) -> int:
    """The id of the last event, also of an event that was removed; 0 if there was none."""
    [(last,)] = db.once("SELECT coalesce((SELECT last_event_id FROM notification_counter), 0)")
    return int(last)


def delete_events(pg: PgTx, before: datetime, limit: int = BATCH) -> int:
    """Remove the oldest events, as far as they are from before an instant."""
    pg.sql(
        """
        DELETE FROM notification_log WHERE event_id = ANY(ARRAY(
            SELECT event_id FROM (SELECT event_id, at FROM notification_log ORDER BY event_id LIMIT %s) AS oldest
            WHERE at < %s))""",
        (limit, before),
    )
    return pg.rowcount


def _parameters(wanted: EventFilter) -> dict[str, object]:
    return {
        **wanted._asdict(),
        "types": list(wanted.types),
        "not_types": list(wanted.not_types),
        "tables": list(wanted.tables),
    }
