"""Rules for places: the other users of a place, and the refusals that follow. Pure.

Rule: a table's directory is its own. No other object gets a place inside of it or around it, and a transactional table
shares its directory with no other (ADR 133).
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

_FILE_SYSTEM = re.compile(r"[^:/]*:(//[^/]*)?")


class Relation(StrEnum):
    """The position of an object, as seen from a place."""

    AT = "at"
    ABOVE = "above"
    BELOW = "below"


class User(NamedTuple):
    """An object that has a place, or lies above or below it."""

    place: str
    """The place of the question, as the caller wrote it."""
    relation: Relation
    name: str
    """``table d.t``, for people."""
    location: str
    has_files: bool
    """True for tables and partitions: what lies in their directory is theirs."""
    is_transactional: bool


class Taker(NamedTuple):
    """An object that is to get a place; for databases and catalogs the defaults suffice."""

    has_files: bool = False
    is_transactional: bool = False
    table_id: int = 0
    """The table whose own row and partitions are in nobody's way; 0: a new one."""


def around(place: str) -> list[str]:
    """Return a place and every directory that it lies in; the root of its file system ends with a slash."""
    root = _FILE_SYSTEM.match(place)
    names = place.rstrip("/").split("/")
    found = ["/".join(names[:count]) for count in range(len(names), 0, -1)]
    return [*found, f"{root[0]}/"] if root else found


def refused(taker: Taker, users: Iterable[User]) -> str | None:
    """Return a sentence for the client why the taker cannot have a place; None: it can."""
    for user in users:
        if user.relation is Relation.ABOVE and user.has_files:
            return (
                f"{user.place} lies inside the directory of {user.name} ({user.location}), where only its own "
                "partitions may lie: choose a location outside of it"
            )
        if user.relation is Relation.BELOW and taker.has_files:
            return (
                f"{user.name} lies inside {user.place} ({user.location}), and nothing else may lie in the directory of "
                "a table: choose a location that has nothing of others in it"
            )
        if user.relation is Relation.AT and (taker.is_transactional or user.is_transactional):
            return (
                f"{user.place} is the directory of {user.name}, and a transactional table shares its directory with "
                "nobody: choose another location"
            )
    return None
