"""The notification log: changes of the catalog, of transactions and of write ids, in the order of their commits."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from metastore.config import EventSettings
from metastore.db.engine import Database, PgTx
from metastore.db.pieces import UNLIMITED, Pieces
from metastore.txns.core.store import lock_open
from metastore.txns.events import store as event_store
from metastore.txns.events.store import EventFilter, EventList, LoggedEvent
from metastore.txns.write_events import store as write_event_store
from metastore.txns.write_events.store import WriteEvent

EVERYTHING, CATALOG = "DbNotificationListener", "CatalogEventListener"
"""Hive's class that writes the log, in whichever package a version has it; and our name for a part of it."""


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
        """True if the configuration asks for events of transactions, as Hive's does."""
        return self._names(EVERYTHING)

    @property
    def of_catalog(self) -> bool:
        """True if the configuration asks for events of the catalog."""
        return self._names(EVERYTHING, CATALOG)

    def switch(self) -> bool:
        """Switch events of transactions on or off for all servers of this database; return whether that is a change."""
        return event_store.switch(self.db, on=self.wanted)

    def get_next_notification(self, wanted: EventFilter, most: int | None) -> Pieces[Sequence[LoggedEvent]]:
        """Return the next events, at most ``most`` if that is above 0. Skipped events do not count."""
        event_store.number(self.db)
        return EventList(wanted).read(self.db, _limit(most))

    def get_current_notification_event_id(self) -> int:
        """Return the id of the last event; 0 if there was none yet."""
        event_store.number(self.db)
        return event_store.select_last_id(self.db)

    def get_notification_events_count(self, wanted: EventFilter, most: int | None) -> int:
        """Count the events, up to ``most`` if that is above 0."""
        event_store.number(self.db)
        return EventList(wanted).count(self.db.once, _limit(most))

    def is_on(self) -> bool:
        """Return True if any server writes events of transactions at the moment."""
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
        """Remove events, and notes of files, that are older than the time to live.

        Events that nobody has read get their numbers before: a reader that comes late must see that some are missing.
        """
        event_store.number(self.db)
        return EventReport(
            self._in_batches(event_store.delete_events, event_store.BATCH),
            self._in_batches(write_event_store.delete_before, write_event_store.BATCH),
        )

    def _names(self, *listeners: str) -> bool:
        return any(name.endswith(listeners) for _, names in self.settings.named_classes() for name in names)

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
