"""Events of the catalog as a client has them: messages read by Python's Thrift, which did not write them."""

import base64
import gzip
import json

from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.transport.TTransport import TMemoryBuffer

from metastore.thrift_gen.hive_metastore import ttypes as T

STRUCTS = {
    "table": T.Table, "ptn": T.Partition, "partition": T.Partition, "db": T.Database, "function": T.Function, "cat": T.Catalog,
    "primaryKey": T.SQLPrimaryKey, "foreignKey": T.SQLForeignKey, "uniqueConstraint": T.SQLUniqueConstraint,
    "notNullConstraint": T.SQLNotNullConstraint, "defaultConstraint": T.SQLDefaultConstraint,
    "checkConstraint": T.SQLCheckConstraint, "colStats": T.ColumnStatistics}


def struct(kind, text):
    """Read a struct from Thrift's JSON; Hive writes base64 without padding, which Python's Thrift reads only with it."""
    found = kind()
    found.read(TJSONProtocol(TMemoryBuffer(text.encode())))
    return found


def decoded(event):
    """Return the message's keys and values; objects are structs under their names without ``Json``."""
    text = event.message
    if event.messageFormat == "gzip(json-2.0)":
        text = gzip.decompress(base64.b64decode(text)).decode()
    message = json.loads(text)
    assert (message.pop("server"), message.pop("servicePrincipal")) == ("", "")
    assert message.pop("timestamp") == event.eventTime
    found = {}
    for key, value in message.items():
        if not key.endswith("Json") or value is None:
            found[key.removesuffix("Json")] = value
            continue
        kind = next(kind for name, kind in sorted(STRUCTS.items(), key=lambda pair: -len(pair[0])) if key.startswith(name))
        found[key.removesuffix("Json")] = [struct(kind, one) for one in value] if isinstance(value, list) else struct(kind, value)
    return found


def events(client, after=0, **more):
    return client.get_next_notification(T.NotificationEventRequest(after, **more)).events


def last_id(client):
    return client.get_current_notificationEventId().eventId


def told(client, action):
    """Run an action and return its events: type, database, table and message."""
    before = last_id(client)
    action()
    new = events(client, before)
    assert [one.eventId for one in new] == list(range(before + 1, before + 1 + len(new)))
    return [(one.eventType, one.dbName, one.tableName, decoded(one)) for one in new]
