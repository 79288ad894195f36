"""The notification log: outcomes of transactions and write ids, in the order in which they happened."""

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
    """The numbers of removed events, and of removed notes of written files."""

    events: int = 0
    write_events: int = 0


@dataclass(frozen=True)
class EventService:
    """The reads of the log, and its clean-up."""

    db: Database
    settings: EventSettings

    @property
    def wanted(self) -> bool:
        """True if the configuration asks for the log, as Hive's does."""
        return any(name.endswith(LISTENER) for _, names in self.settings.named_classes() for name in names)

    def switch(self) -> bool:
        """Switch the log on or off for all servers of this database; return whether that is a change."""
        return event_store.switch(self.db, on=self.wanted)

    def get_next_notification(self, wanted: EventFilter, most: int | None) -> Pieces[bytes]:
        """Return the next events as bytes for clients, at most ``most`` if that is above 0.

        Skipped events do not count.
        """
        return event_store.listed_events(wanted).read(self.db, _limit(most), event_store.SIZES)

    def get_current_notification_event_id(self) -> int:
        """Return the id of the last event; 0 if there was none yet."""
        return event_store.select_last_id(self.db)

    def get_notification_events_count(self, wanted: EventFilter, most: int | None) -> int:
        """Count the events, up to ``most`` if that is above 0."""
        return event_store.count_events(self.db, wanted, _limit(most))

    def is_on(self) -> bool:
        """Return True if any server writes the log at the moment."""
        return event_store.is_on(self.db)

    def add_write_notification_log(self, events: Collection[WriteEvent]) -> None:
        """Record the files that open transactions wrote. Retry: idempotent. Raises: TxnAbortedError, NoSuchTxnError."""
        if not events:
            return
        with self.db.begin(durable=False) as pg:
            lock_open(pg, sorted({event.txn_id for event in events}))
            write_event_store.upsert(pg, events)

    def get_all_write_event_info(self, txn_id: int, db: str | None, table: str | None) -> list[WriteEvent]:
        """Return the recorded writes of a transaction, file by file; None: in any database, table."""
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
    """Return the limit that a client gives; without one, or with 0 or less, there is no limit."""
    return most if most and most > 0 else UNLIMITED
