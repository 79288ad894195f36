"""Rows of the notification log, written in the PostgreSQL transaction of the change.

Triggers write those of transactions (`log.sql`), services of the catalog theirs (`append`). They have no number until
somebody reads: writers wait neither for each other nor for a counter (ADR 137).
"""

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from metastore.db import arrays, pieces
from metastore.db.engine import Database, PgTx
from metastore.db.pieces import Asked, Pieces, Run, Sizes
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.txns.events.rules import Event

BATCH = 10_000
NUMBERED = 10_000
"""The events that are numbered in one transaction."""

_SQL = Statements(__file__)
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


class LoggedEvent(NamedTuple):
    """An event as it was read; ``at``: seconds since 1970."""

    id: int
    at: int
    type: str
    catalog: str | None
    db: str | None
    table: str | None
    plain: str
    body: bytes | None

    @property
    def message(self) -> str:
        """The message as Hive's JSON."""
        if self.body is None:
            return self.plain
        text = zlib.decompress(self.body).decode()
        comma = "," if len(text) > len("{}") else ""
        return f'{{"server":"","servicePrincipal":"","timestamp":{self.at}{comma}{text[1:]}'


SIZES = Sizes(1000, 1000, 1000)
"""The sizes of the pieces in which events are read."""
_COLUMNS = "event_id, floor(date_part('epoch', at))::int, type, catalog, db, \"table\", message, body"
_QUICK = 1
"""zlib's level: messages of many partitions repeat themselves, so that no more is gained by looking longer."""
_APPEND, _INSERT = Prepared(_SQL.text("append")), _SQL.text("insert")
_COLUMNS_OF_NEW = ("types", "catalogs", "dbs", "tables", "bodies")
_NUMBER = "SELECT metastore_number_events(%s)"


def append(pg: PgTx, events: Sequence[Event]) -> None:
    """Write events, in their order, when the transaction commits."""
    if events:
        pg.at_commit(_APPEND, _values(events))


def insert_events(pg: PgTx, events: Sequence[Event]) -> list[int]:
    """Write events at once, with numbers, and return these; the caller does nothing else before COMMIT."""
    if not events:
        return []
    pg.sql(_NUMBER, (NUMBERED,))
    return [event_id for (event_id,) in pg.sql(_INSERT, {"size": len(events), **_values(events)})]


def number(db: Database) -> None:
    """Give committed events their numbers. This waits for the disk, so that no number that is told comes again."""
    while db.once(_NUMBER, (NUMBERED,)) == [(NUMBERED,)]:
        pass


def _values(events: Sequence[Event]) -> dict[str, str]:
    rows = [(*event[:-1], "\\x" + _compressed(event.message).hex()) for event in events]
    return dict(zip(_COLUMNS_OF_NEW, arrays.columns(rows, len(Event._fields)), strict=True))


def _compressed(message: Mapping[str, object]) -> bytes:
    return zlib.compress(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(), _QUICK)


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


class EventPiece(NamedTuple):
    """Some events, in the order of their ids."""

    events: Sequence[LoggedEvent]

    @property
    def size(self) -> int:
        """The number of events."""
        return len(self.events)

    @property
    def last(self) -> int:
        """The id of the last event."""
        return self.events[-1].id


@dataclass(frozen=True)
class EventList:
    """The events that a filter wants, ascending."""

    wanted: EventFilter

    def piece(self, asked: Asked, after: int | None, most: int) -> EventPiece:
        """Return the first events behind an id; None: the very first."""
        condition, parameters = _condition(self.wanted if after is None else self.wanted._replace(after_id=after))
        rows = asked.rows(
            f"SELECT {_COLUMNS} FROM notification_log WHERE {condition} ORDER BY event_id LIMIT %s", (*parameters, most)
        )
        return EventPiece(_logged(rows))

    def count(self, run: Run, limit: int) -> int:
        """Count the events, up to ``limit`` unless negative."""
        condition, parameters = _condition(self.wanted)
        [(count,)] = run(
            f"SELECT count(*) FROM (SELECT FROM notification_log WHERE {condition} LIMIT %s) AS listed",
            (*parameters, None if limit < 0 else limit),
        )
        return int(count)

    def read(self, db: Database, limit: int) -> Pieces[Sequence[LoggedEvent]]:
        """Return the first ``limit`` events, all if that is negative."""
        return pieces.read(db, self, limit, SIZES).of(lambda piece: piece.events)


def _logged(rows: Iterable[Sequence[Any]]) -> list[LoggedEvent]:
    return [LoggedEvent._make((*row, None if body is None else bytes(body))) for *row, body in rows]


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
