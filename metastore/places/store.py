"""SQL about objects at a place, above it or below it, as the indexes on locations answer it.

An index holds the first characters of a location, since PostgreSQL keeps no longer ones in an index; they are compared
as bytes, so that everything below a place is a range of them. Hits of the index are compared whole.
"""

from collections.abc import Iterable, Sequence

from metastore.db.engine import PgTx
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.places.rules import Relation, User, around
from metastore.roots import spellings

_SQL = Statements(__file__)

_INDEXED = 500
"""Characters of a location that are in the indexes of migrations 0028 and 0041."""


def at(location: str, place: str) -> str:
    """Return the condition that a column is this place."""
    return f"({start(location)} = left({place}, {_INDEXED}) AND {location} = {place})"


def below(location: str, place: str) -> str:
    """Return the condition that a column lies inside this place; "0" is the character after "/"."""
    return (
        f"({start(location)} BETWEEN left({place} || '/', {_INDEXED}) AND left({place} || '0', {_INDEXED}) "
        f"AND starts_with({location}, {place} || '/'))"
    )


def start(location: str) -> str:
    """Return the indexed part of a location column, in the index's order."""
    return f'left({location} COLLATE "C", {_INDEXED})'


_SELECT_USERS = Prepared(
    _SQL.text(
        "select_users",
        table="'table ' || t.db || '.' || t.name",
        partition="'partition ' || t.db || '.' || t.name || '/' || p.name",
        transactional="is_transactional(t.parameters)",
        not_own="t.id <> %(own)s::bigint",
        not_mine="NOT (p.table_id = %(own)s::bigint AND (%(mine)s::text[] IS NULL OR p.name = ANY(%(mine)s::text[])))",
        at=at("location", "a.place"),
        database_at=at("location", "b.place"),
        managed_at=at("managed_location", "b.place"),
        partition_at=at("p.location", "a.place"),
        below=below("location", "b.place"),
        managed_below=below("managed_location", "b.place"),
        partition_below=below("p.location", "b.place"),
        start=start("location"),
        managed_start=start("managed_location"),
        partition_start=start("p.location"),
    )
)


def select_users(
    pg: PgTx,
    places: Iterable[str],
    own: int = 0,
    own_partitions: Sequence[str] | None = None,
    *,
    own_counts: bool = False,
) -> list[User]:
    """Return other users of some places, or of directories around or inside: one of each kind, transactional first.

    This is the one query before a place is given and before files in it are removed. A database or catalog above a
    place is none of its users. ``own``: a table that does not count, nor do its partitions of these names (None: all).
    ``own_counts``: it counts if it is not above, since the removed directory is not its own any more.
    """
    asked = [(spelled.rstrip("/"), place) for place in places for spelled in spellings(place)]
    if not asked:
        return []
    inside = list(dict.fromkeys(spelled for spelled, _ in asked))
    wanted = {
        "around": list(dict.fromkeys(directory for spelled in inside for directory in around(spelled))),
        "places": inside,
        "own": own,
        "own_counts": own_counts,
        "mine": None if own_partitions is None else list(own_partitions),
    }
    near = dict[str, list[User]]()
    for directory, *columns in pg.sql(_SELECT_USERS, wanted):
        near.setdefault(directory.rstrip("/"), []).append(User("", Relation.ABOVE, *columns))
    users: list[User] = []
    for spelled, place in asked if near else ():
        for directory in dict.fromkeys(directory.rstrip("/") for directory in around(spelled)):
            for user in near.get(directory, ()):
                location = user.location.rstrip("/")
                if location == spelled:
                    users.append(user._replace(place=place, relation=Relation.AT))
                elif location == directory and user.has_files:
                    users.append(user._replace(place=place))
                elif directory == spelled:
                    users.append(user._replace(place=place, relation=Relation.BELOW))
    return users
