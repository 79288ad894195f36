"""The calls of the notification log: decode, ask the service, encode."""

from metastore.ids import DEFAULT_CATALOG
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.txns.event_service import EventService
from metastore.txns.event_store import Event, EventFilter

MESSAGE_FORMAT = "json-0.2"
"""Plain JSON, which readers of every version understand."""


class NotificationHandlers:
    """get_next_notification and what belongs to it."""

    def __init__(self, events: EventService) -> None:
        """``events`` does the work."""
        self.events = events

    def get_next_notification(self, _call: Call, rqst: ttypes.NotificationEventRequest,
                              ) -> ttypes.NotificationEventResponse:
        """Events behind an id, ascending."""
        wanted = EventFilter(
            rqst.lastEvent, None, tuple(rqst.eventTypeList or ()), tuple(rqst.eventTypeSkipList or ()),
            _lower(rqst.catName) if rqst.dbName else "", _lower(rqst.dbName), tuple(map(_lower, rqst.tableNames or ())))
        return ttypes.NotificationEventResponse(
            events=[_event(one) for one in self.events.get_next_notification(wanted, rqst.maxEvents)])

    def get_current_notificationEventId(self, _call: Call) -> ttypes.CurrentNotificationEventId:
        """The id of the last event."""
        return ttypes.CurrentNotificationEventId(eventId=self.events.get_current_notification_event_id())

    def get_notification_events_count(self, _call: Call, rqst: ttypes.NotificationEventsCountRequest,
                                      ) -> ttypes.NotificationEventsCountResponse:
        """How many events of a database there are behind an id."""
        wanted = EventFilter(rqst.fromEventId, rqst.toEventId, catalog=_lower(rqst.catName) or DEFAULT_CATALOG,
                             db=_lower(rqst.dbName), tables=tuple(map(_lower, rqst.tableNames or ())))
        return ttypes.NotificationEventsCountResponse(
            eventsCount=self.events.get_notification_events_count(wanted, rqst.limit))


def _event(one: Event) -> ttypes.NotificationEvent:
    return ttypes.NotificationEvent(
        eventId=one.event_id, eventTime=int(one.at.timestamp()), eventType=one.type, dbName=one.db,
        tableName=one.table, message=one.message, messageFormat=MESSAGE_FORMAT, catName=one.catalog)


def _lower(name: str | None) -> str:
    return (name or "").lower()
