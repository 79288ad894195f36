"""Rare methods as pure rules over the objects that they see, and the declarations that most methods are made of.

Rule: a rule decides by the request and by the objects in its scope, and returns the answer with the changes. No other
change of its concept runs meanwhile, so that an object that was not found stays absent until the change is made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from metastore.errors import AlreadyExistsError, MetaError, NoSuchObjectError
from metastore.ids import DEFAULT_CATALOG
from metastore.txns.events.rules import Event

Json = dict[str, Any]
Key = tuple[str, ...]
"""The names of an object, from the widest to its own."""


class Kind(NamedTuple):
    """A kind of objects. ``name``: the stored text, which messages show too."""

    name: str
    in_database: bool = False
    """True if keys begin with catalog and database: objects need the database, and go with it."""


DATABASE = Kind("database")
"""The databases of the catalog, which rules may see as ``{"connector": ...}``; their keys are (catalog, database)."""
REMOTE_DATABASES = Kind("remote databases")
"""The databases of type REMOTE that a data connector stands for, as ``{"names": [...]}`` unless there are none."""
TABLE = Kind("table")
"""The tables, as ``{"partitionKeys": ..., "parameters": ...}``; their keys are (catalog, database, table)."""

RUNTIME_STATISTIC = Kind("runtime statistic")
REPLICATION_METRICS = Kind("replication metrics")
PARTITION_MARK = Kind("partition mark")
SCHEDULED_EXECUTION = Kind("scheduled execution")
"""These four are kept for a time."""
SCHEDULED_QUERY = Kind("scheduled query")


class Place(NamedTuple):
    """An object's kind and key. In a scope, a key may be cut short and stand for all keys that begin with it."""

    kind: Kind
    key: Key


@dataclass(frozen=True)
class Work:
    """A call as its rule sees it."""

    request: Json
    """The struct that is the method's only argument, or its arguments by name. Fields that were not sent are absent."""
    found: Mapping[Place, Json]
    """The objects of the scope, in the order of their keys."""
    now: datetime
    number: int
    """A number that no other change gets; greater ones are later."""
    settings: Any
    """The settings of `metastore.config.rare`; rules import none."""
    user: str | None = None
    """The caller, if known."""


class Outcome(NamedTuple):
    """The answer of a call, the objects to store, by place, and the events of the change.

    None in place of an object removes it.
    """

    answer: Any = None
    changes: Mapping[Place, Json | None] = {}
    events: Sequence[Event] = ()


class Method(NamedTuple):
    """A declaration of a method. ``scope``: the objects that the rule sees, by the request."""

    scope: Callable[[Json], Sequence[Place]]
    rule: Callable[[Work], Outcome]
    changes: bool = True


KeyOf = Callable[[Json], Key]


def name_of(value: str | None, what: str) -> str:
    """Return a name in its stored spelling. Raises: MetaError if it is missing."""
    if value is None:
        raise MetaError(f"Null {what} is not allowed")
    return value.strip().lower()


def catalog_of(value: str | None) -> str:
    """Return a catalog's name, the default catalog's if it is missing."""
    return name_of(value or DEFAULT_CATALOG, "catalog name")


def part_of(request: Json, field: str) -> Any:
    """Return a field of a request. Raises: MetaError if it is missing."""
    if field not in request:
        raise MetaError(f"Null {field} is not allowed")
    return request[field]


def the(kind: Kind, key: Key, found: Mapping[Place, Json]) -> Json:
    """Return an object. Raises: NoSuchObjectError."""
    body = found.get(Place(kind, key))
    if body is None:
        raise NoSuchObjectError(f"There is no {kind.name} named {'.'.join(key)}")
    return body


def all_of(kind: Kind, found: Mapping[Place, Json]) -> dict[Key, Json]:
    """Return the objects of one kind, by key."""
    return {place.key: body for place, body in found.items() if place.kind == kind}


def read(scope: Callable[[Json], Sequence[Place]], answer: Callable[[Work], Any]) -> Method:
    """Declare a method that changes nothing."""
    return Method(scope, lambda work: Outcome(answer(work)), changes=False)


def get(kind: Kind, key_of: KeyOf) -> Method:
    """Declare a method that returns an object. It raises NoSuchObjectError."""
    return read(
        lambda request: [Place(kind, key_of(request))], lambda work: the(kind, key_of(work.request), work.found)
    )


def put(
    kind: Kind, key_of: KeyOf, body_of: Callable[[Work], Json], beside: Callable[[Json], Sequence[Place]] = lambda _: ()
) -> Method:
    """Declare a method that adds an object or replaces the one of this name. ``beside``: objects ``body_of`` sees."""
    return Method(beside, lambda work: Outcome(changes={Place(kind, key_of(work.request)): body_of(work)}))


def create(
    kind: Kind, key_of: KeyOf, body_of: Callable[[Work], Json], beside: Callable[[Json], Sequence[Place]] = lambda _: ()
) -> Method:
    """Declare a method that adds an object. ``beside``: further objects that ``body_of`` sees.

    It raises AlreadyExistsError.
    """

    def rule(work: Work) -> Outcome:
        place, body = Place(kind, key_of(work.request)), body_of(work)
        if place in work.found:
            raise AlreadyExistsError(f"The {kind.name} {'.'.join(place.key)} already exists")
        return Outcome(changes={place: body})

    return Method(lambda request: [Place(kind, key_of(request)), *beside(request)], rule)


def alter(
    kind: Kind,
    key_of: KeyOf,
    altered: Callable[[Json, Work], Json],
    beside: Callable[[Json], Sequence[Place]] = lambda _: (),
) -> Method:
    """Declare a method that replaces an object by the result of ``altered``. The method raises NoSuchObjectError."""

    def rule(work: Work) -> Outcome:
        key = key_of(work.request)
        return Outcome(changes={Place(kind, key): altered(the(kind, key, work.found), work)})

    return Method(lambda request: [Place(kind, key_of(request)), *beside(request)], rule)


def drop(kind: Kind, key_of: KeyOf, *, if_exists: bool = False) -> Method:
    """Declare a method that removes an object. It raises NoSuchObjectError, without ``if_exists``."""

    def rule(work: Work) -> Outcome:
        key = key_of(work.request)
        if not if_exists:
            the(kind, key, work.found)
        return Outcome(changes={Place(kind, key): None})

    return Method(lambda request: [Place(kind, key_of(request))], rule)
