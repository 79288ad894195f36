"""Types by name, which clients of Hive's first versions made. Their names are as sent. Source: CAT-R5."""

from collections import Counter

from metastore.catalog.rare.rules.objects import Json, Key, Kind, Method, Outcome, Place, Work, get, part_of
from metastore.catalog.rules.names import is_object_name
from metastore.errors import AlreadyExistsError, InvalidObjectError, MetaError

TYPE = Kind("type")


def _key(request: Json) -> Key:
    return (part_of(request, "name"),)


def _created(work: Work) -> Outcome:
    place = Place(TYPE, _key(work.request))
    [name] = place.key
    if not is_object_name(name.lower()):
        raise InvalidObjectError(f"{name} is not a valid name of a type")
    fields = Counter(field.get("name") for field in work.request.get("fields", []))
    if None in fields or len(fields) < fields.total():
        raise MetaError(f"Type {name} has a field without a name, or two of one name")
    if place in work.found:
        raise AlreadyExistsError(f"Type {name} already exists")
    return Outcome(answer=True, changes={place: {"fields": [], **work.request}})


def _dropped(work: Work) -> Outcome:
    """Remove a type: Hive also answers that an unknown one is gone."""
    return Outcome(answer=True, changes={Place(TYPE, (part_of(work.request, "type"),)): None})


METHODS = {
    "create_type": Method(lambda request: [Place(TYPE, _key(request))], _created),
    "get_type": get(TYPE, _key),
    "drop_type": Method(lambda _: (), _dropped),
}
