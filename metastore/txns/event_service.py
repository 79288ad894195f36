"""The notification log: what became of transactions and write ids, in the order in which it became so."""

from dataclasses import dataclass

from metastore.config import EventSettings
from metastore.db.engine import Database
from metastore.txns import event_store
from metastore.txns.event_store import Event, EventFilter

LISTENER = "DbNotificationListener"
"""Hive's class that writes the log, in whichever package a version has it."""


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

    def get_next_notification(self, wanted: EventFilter, most: int | None) -> list[Event]:
        """The next events, at most ``most`` if that is above 0. What is skipped does not count."""
        return event_store.select_events(self.db, wanted, most if most and most > 0 else None)

    def get_current_notification_event_id(self) -> int:
        """The id of the last event; 0 if there never was one."""
        return event_store.select_last_id(self.db)

    def get_notification_events_count(self, wanted: EventFilter, most: int | None) -> int:
        """How many events there are, at most ``most`` if that is above 0."""
        return event_store.count_events(self.db, wanted, most if most and most > 0 else None)

    def purge(self) -> int:
        """Remove events that are older than the time to live."""
        count, removed = 0, event_store.BATCH
        while removed == event_store.BATCH:
            with self.db.begin(durable=False) as pg:
                removed = event_store.delete_events(pg, pg.now - self.settings.time_to_live)
            count += removed
        return count
