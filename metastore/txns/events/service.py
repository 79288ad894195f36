"""The notification log: what became of transactions and write ids, in the order in which it became so."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from metastore.config import EventSettings
from metastore.db.engine import Database, PgTx
from metastore.db.pieces import UNLIMITED, Pieces
from metastore.txns.core.store import lock_open
from metastore.txns.events import store as event_store
from metastore.txns.events.store import EventFilter
from metastore.txns.write_events import store as write_event_store
from metastore.txns.write_events.store import WriteEvent

LISTENER = "DbNotificationListener"
"""Hive's class that writes the log, in whichever package a version has it."""


@dataclass(frozen=True)
class EventReport:
    """How many events, and how many notes of what a transaction wrote, were removed."""

    events: int = 0
    write_events: int = 0


@dataclass(frozen=True)
class EventService:
    """Reading the log, and keeping it short."""

    db: Database
    settings: EventSettings

    @property
    def wanted(self) -> bool:
        """Whether the configuration asks for the log, as Hive's does."""
        return any(name.strip().endswith(LISTENER) for name in self.settings.listeners.split(","))

    def switch(self) -> bool:
        """Write the log from now on, or not, for all servers of this database; whether that is a change."""
        return event_store.switch(self.db, on=self.wanted)

    def get_next_notification(self, wanted: EventFilter, most: int | None) -> Pieces[bytes]:
        """The next events as bytes for clients, at most ``most`` if that is above 0. What is skipped does not count."""
        return event_store.listed_events(wanted).read(self.db, _limit(most), event_store.SIZES)

    def get_current_notification_event_id(self) -> int:
        """Return the id of the last event; 0 if there never was any."""
        return event_store.select_last_id(self.db)

    def get_notification_events_count(self, wanted: EventFilter, most: int | None) -> int:
        """Return how many events there are, at most ``most`` if that is above 0."""
        return event_store.count_events(self.db, wanted, _limit(most))

    def is_on(self) -> bool:
        """Return True if the log is written at the moment, by whichever server."""
        return event_store.is_on(self.db)

    def add_write_notification_log(self, events: Collection[WriteEvent]) -> None:
        """Note the files that open transactions wrote. Retry: idempotent. Raises: TxnAbortedError, NoSuchTxnError."""
        if not events:
            return
        with self.db.begin(durable=False) as pg:
            lock_open(pg, sorted({event.txn_id for event in events}))
            write_event_store.upsert(pg, events)

    def get_all_write_event_info(self, txn_id: int, db: str | None, table: str | None) -> list[WriteEvent]:
        """Return what a transaction wrote, file by file, as far as it was noted; None: in whichever database, table."""
        return write_event_store.select_of(self.db, txn_id, db, table)

    def purge(self) -> EventReport:
        """Remove events, and notes of files, that are older than the time to live."""
        return EventReport(
            self._in_batches(event_store.delete_events, event_store.BATCH),
            self._in_batches(write_event_store.delete_before, write_event_store.BATCH),
        )

    def _in_batches(self, delete: Callable[[PgTx, datetime], int], batch: int) -> int:
        count, removed = 0, batch
        while removed == batch:
            with self.db.begin(durable=False) as pg:
                removed = delete(pg, pg.now - self.settings.time_to_live)
            count += removed
        return count


def _limit(most: int | None) -> int:
    """Return the number that a client gives: without it, with 0 and below there is none."""
    return most if most and most > 0 else UNLIMITED
