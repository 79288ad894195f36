"""The call fire_listener_event: decode, ask the service, encode."""

from __future__ import annotations

from metastore.catalog.service.listener_events import Insert, ListenerEvents, Values
from metastore.errors import InvalidRequestError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import table_name_of
from metastore.thrift_server.dispatch.call import Call
from metastore.txns.write_events.rules import encoded_of_insert


class ListenerEventHandlers:
    """Events that clients make."""

    def __init__(self, events: ListenerEvents, cmroot: str = "") -> None:
        """Prepare the handlers. ``events`` does the work; ``cmroot``: the directory of files for replicas; "": none."""
        self._events, self._cmroot = events, cmroot

    def fire_listener_event(self, call: Call, rqst: ttypes.FireEventRequest) -> ttypes.FireEventResponse:
        """Record an insert, several, or that a client has read a table anew; return the ids of their events."""
        name = table_name_of(rqst.dbName, rqst.tableName, rqst.catName)
        call.log(table=str(name))
        data = rqst.data
        if data.insertData is not None:
            ids = self._events.inserted(name, [self._insert(data.insertData, rqst.partitionVals)])
        elif data.insertDatas is not None:
            if any(each.partitionVal is None for each in data.insertDatas):
                raise InvalidRequestError("Partition values must be set when firing multiple insert events")
            ids = self._events.inserted(name, [self._insert(each, each.partitionVal) for each in data.insertDatas])
        elif data.refreshEvent is not None:
            places = rqst.batchPartitionValsForRefresh or [rqst.partitionVals]
            ids = self._events.reloaded(name, places, rqst.tblParams or {}, refresh=data.refreshEvent)
        else:
            raise InvalidRequestError(f"The event of {name} is neither an insert nor a refresh")
        return ttypes.FireEventResponse(ids)

    def _insert(self, data: ttypes.InsertEventRequestData, values: Values) -> Insert:
        """Decode an insert. A client that does not say so has replaced what was there, as in Hive."""
        files = encoded_of_insert(data.filesAdded or (), data.filesAddedChecksum or (), self._cmroot)
        return Insert(values, files, data.replace is None or data.replace)
