"""Data connectors: the places that databases of type REMOTE stand for."""

from metastore.catalog.events.rules import EventType, connector_changed
from metastore.catalog.model import USER
from metastore.catalog.rare.rules.objects import (
    REMOTE_DATABASES,
    Json,
    Key,
    Kind,
    Method,
    Outcome,
    Place,
    Work,
    all_of,
    alter,
    create,
    get,
    name_of,
    part_of,
    read,
    the,
)
from metastore.catalog.rules.names import is_database_name
from metastore.errors import InvalidObjectError, InvalidOperationError

CONNECTOR = Kind("data connector")


def _key(request: Json) -> Key:
    return (name_of(request["connectorName"], "connectorName"),)


def _new_key(request: Json) -> Key:
    return (name_of(request["connector"].get("name"), "data connector name"),)


def _new(work: Work) -> Json:
    connector = work.request["connector"]
    [name] = _new_key(work.request)
    if not is_database_name(name):
        raise InvalidObjectError(f"{name} is not a valid dataconnector name")
    part_of(connector, "type")
    part_of(connector, "url")
    defaults: Json = {"ownerName": work.user, "ownerType": USER, "parameters": {}}
    return {**defaults, **connector, "name": name, "createTime": int(work.now.timestamp())}


def _altered(old: Json, work: Work) -> Json:
    """Replace URL, parameters and owner, and the other fields that the request sets; name and type stay."""
    new = work.request["newConnector"]
    kept = {field: value for field, value in old.items() if field != "ownerName"}
    given = {
        "parameters": {},
        "url": part_of(new, "url"),
        **{field: new[field] for field in ("parameters", "ownerName", "ownerType") if field in new},
    }
    described = {"description": new["description"]} if new.get("description", "").strip() else {}
    return {**kept, **given, **described}


def _drop(work: Work) -> Outcome:
    key = _key(work.request)
    place = Place(CONNECTOR, key)
    if work.request.get("ifNotExists") and place not in work.found:
        return Outcome()
    the(CONNECTOR, key, work.found)
    used = work.found.get(Place(REMOTE_DATABASES, key))
    if work.request.get("checkReferences") and used is not None:
        raise InvalidOperationError(
            f"The data connector {key[0]} is that of {', '.join(used['names'])}: drop these databases first, or drop "
            "the connector without checkReferences"
        )
    return Outcome(changes={place: None})


def _recorded(kind: EventType, method: Method) -> Method:
    """Return a method with an event for each changed connector."""

    def rule(work: Work) -> Outcome:
        outcome = method.rule(work)
        return outcome._replace(
            events=[event for _, [name] in outcome.changes for event in connector_changed(kind, name)]
        )

    return method._replace(rule=rule)


METHODS = {
    "create_dataconnector_req": _recorded(EventType.CREATE_CONNECTOR, create(CONNECTOR, _new_key, _new)),
    "get_dataconnector_req": get(CONNECTOR, _key),
    "get_dataconnectors": read(
        lambda _: [Place(CONNECTOR, ())], lambda work: [name for (name,) in all_of(CONNECTOR, work.found)]
    ),
    "alter_dataconnector_req": _recorded(EventType.ALTER_CONNECTOR, alter(CONNECTOR, _key, _altered)),
    "drop_dataconnector_req": _recorded(
        EventType.DROP_CONNECTOR,
        Method(lambda request: [Place(CONNECTOR, _key(request)), Place(REMOTE_DATABASES, _key(request))], _drop),
    ),
}
