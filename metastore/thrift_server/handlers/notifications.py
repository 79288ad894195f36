"""The calls of the notification log, and of transactions' written files: decode, ask the service, encode."""

from __future__ import annotations

from metastore.ids import DEFAULT_CATALOG
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.event_texts import GZIP, PLAIN, encoded_events
from metastore.thrift_server.convert.write_events import WriteEvents, info_of
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.responses.streamed import InPieces
from metastore.txns.events.service import EventService
from metastore.txns.events.store import EventFilter

_GZIP_FACTORY = "GzipJSONMessageEncoder"


class NotificationHandlers:
    """The call get_next_notification and related ones."""

    def __init__(self, events: EventService, writes: WriteEvents) -> None:
        """Prepare the handlers. ``events`` does the work; ``writes`` knows the tables that writers name."""
        self.events, self.writes = events, writes
        factory = events.settings.message_factory
        self.message_format = GZIP if factory.endswith(_GZIP_FACTORY) else PLAIN

    def get_next_notification(self, _call: Call, rqst: ttypes.NotificationEventRequest) -> InPieces:
        """Return events behind an id, ascending."""
        wanted = EventFilter(
            rqst.lastEvent,
            None,
            tuple(rqst.eventTypeList or ()),
            tuple(rqst.eventTypeSkipList or ()),
            _lower(rqst.catName) if rqst.dbName else "",
            _lower(rqst.dbName),
            tuple(map(_lower, rqst.tableNames or ())),
        )
        events = self.events.get_next_notification(wanted, rqst.maxEvents)
        encoded = events.flattened(lambda some: encoded_events(some, self.message_format))
        return InPieces(ttypes.NotificationEventResponse, ttypes.NotificationEvent, events.count, encoded)

    def get_current_notificationEventId(self, _call: Call) -> ttypes.CurrentNotificationEventId:
        """Return the id of the last event."""
        return ttypes.CurrentNotificationEventId(eventId=self.events.get_current_notification_event_id())

    def get_notification_events_count(
        self, _call: Call, rqst: ttypes.NotificationEventsCountRequest
    ) -> ttypes.NotificationEventsCountResponse:
        """Count the events of a database behind an id."""
        wanted = EventFilter(
            rqst.fromEventId,
            rqst.toEventId,
            catalog=_lower(rqst.catName) or DEFAULT_CATALOG,
            db=_lower(rqst.dbName),
            tables=tuple(map(_lower, rqst.tableNames or ())),
        )
        return ttypes.NotificationEventsCountResponse(
            eventsCount=self.events.get_notification_events_count(wanted, rqst.limit)
        )

    def add_write_notification_log(
        self, call: Call, rqst: ttypes.WriteNotificationLogRequest
    ) -> ttypes.WriteNotificationLogResponse:
        """Record the files that a transaction wrote to a table or partition, if the log is on."""
        call.log(txn_id=rqst.txnId)
        self.events.add_write_notification_log(self.writes.of_requests(None, [rqst]))
        return ttypes.WriteNotificationLogResponse()

    def add_write_notification_log_in_batch(
        self, call: Call, rqst: ttypes.WriteNotificationLogBatchRequest
    ) -> ttypes.WriteNotificationLogBatchResponse:
        """Record written files of many partitions: all of them or none."""
        call.log(table=f"{rqst.db}.{rqst.table}")
        self.events.add_write_notification_log(self.writes.of_requests(rqst.catalog, rqst.requestList or ()))
        return ttypes.WriteNotificationLogBatchResponse()

    def get_all_write_event_info(
        self, call: Call, request: ttypes.GetAllWriteEventInfoRequest
    ) -> list[ttypes.WriteEventInfo]:
        """Return a transaction's writes, file by file; "*" stands for every database, or table."""
        call.log(txn_id=request.txnId)
        db, table = (None if name in {None, "*"} else _lower(name) for name in (request.dbName, request.tableName))
        return [info_of(event) for event in self.events.get_all_write_event_info(request.txnId, db, table)]


def _lower(name: str | None) -> str:
    return (name or "").lower()
