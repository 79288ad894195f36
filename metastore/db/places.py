"""SQL about what lies at a place or below it, as the indexes on locations answer it.

An index holds the first characters of a location, since PostgreSQL keeps no longer ones in an index; they are compared
as bytes, so that everything below a place is a range of them. What the index gives is compared whole.
"""

TABLE = "'table ' || db || '.' || name"
"""How a table is named."""

_INDEXED = 500
"""Characters of a location that are in the indexes of migrations 0028 and 0041."""


def at(location: str, place: str) -> str:
    """The condition that a column is this place."""
    return f"({start(location)} = left({place}, {_INDEXED}) AND {location} = {place})"


def below(location: str, place: str) -> str:
    """The condition that a column lies inside this place; "0" is the character after "/"."""
    return (
        f"({start(location)} BETWEEN left({place} || '/', {_INDEXED}) AND left({place} || '0', {_INDEXED}) "
        f"AND starts_with({location}, {place} || '/'))"
    )


def start(location: str) -> str:
    """What the index of a column holds, in the index's order."""
    return f'left({location} COLLATE "C", {_INDEXED})'


def first_of(table: str, who: str, location: str, place: str) -> str:
    """A query for one row that lies at a place or below it, if there is any: it reads no more than that."""
    return (
        f"(SELECT {who} FROM {table} WHERE {at(location, place)} LIMIT 1) UNION ALL "
        f"(SELECT {who} FROM {table} WHERE {below(location, place)} ORDER BY {start(location)} LIMIT 1)"
    )


def first_users(place: str, partition: str) -> str:
    """A query for the names of a few objects that have a place or one below it; ``partition``: how one is named."""
    return " UNION ALL ".join(
        (
            first_of("databases", "'database ' || name", "location", place),
            first_of("databases", "'database ' || name", "managed_location", place),
            first_of("tables", TABLE, "location", place),
            first_of("partitions", partition, "location", place),
        )
    )
