"""Rows of ``rare_objects``, and what rules see of databases and tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from psycopg2.errors import ForeignKeyViolation

from metastore.catalog.rare.rules.objects import DATABASE, REMOTE_DATABASES, TABLE, Json, Kind, Place
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx
from metastore.errors import NoSuchObjectError
from metastore.ids import DatabaseName

BATCH = 10_000
_ELSEWHERE = {
    DATABASE: "SELECT jsonb_build_object('connector', connector) FROM databases WHERE catalog = %s AND name = %s",
    REMOTE_DATABASES: "SELECT jsonb_build_object('names', jsonb_agg(catalog || '.' || name ORDER BY catalog, name)) "
    "FROM databases WHERE lower(connector) = %s HAVING count(*) > 0",
    TABLE: "SELECT jsonb_build_object('partitionKeys', partition_keys, 'parameters', parameters) FROM tables "
    "WHERE catalog = %s AND db = %s AND name = %s",
}
_WITHIN = "(kind = %s AND key >= %s::text[] AND coalesce(key < %s::text[], true))"
_UPSERT = """
INSERT INTO rare_objects (kind, key, body, changed_at, catalog, db) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body, changed_at = excluded.changed_at"""
_AFTER_EQUALS = "\x01"
"""The end of the least text that is greater than a text, and than no other that is: NUL cannot be stored."""


def lock_concept(pg: PgTx, concept: str) -> int:
    """Keep other changes of a concept waiting until the transaction ends; return a new number."""
    pg.sql("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"rare_objects {concept}",))
    [(number,)] = pg.sql("SELECT nextval('rare_object_number')")
    return int(number)


def select_objects(pg: PgTx, places: Sequence[Place]) -> dict[Place, Json]:
    """Return the objects at these places, those of the same kind in the order of their keys."""
    found = {
        place: body
        for place in places
        if place.kind in _ELSEWHERE
        for (body,) in pg.sql(_ELSEWHERE[place.kind], place.key)
    }
    ours = [place for place in places if place.kind not in _ELSEWHERE]
    if ours:
        kinds = {place.kind.name: place.kind for place in ours}
        bounds = [bound for place in ours for bound in (place.kind.name, *_range(place))]
        condition = " OR ".join([_WITHIN] * len(ours))
        rows = pg.sql(f"SELECT kind, key, body FROM rare_objects WHERE {condition} ORDER BY kind, key", bounds)
        found |= {Place(kinds[kind], tuple(key)): body for kind, key, body in rows}
    return found


def _range(place: Place) -> tuple[list[str], list[str] | None]:
    """Return the range of keys that begin with a place's key: its first key, and the key behind it (None: no end)."""
    first = list(place.key)
    return first, [*first[:-1], first[-1] + _AFTER_EQUALS] if first else None


def update_objects(pg: PgTx, changes: Mapping[Place, Json | None]) -> None:
    """Store objects, and remove those that are None. Raises: NoSuchObjectError without the database of an object."""
    for (kind, key), body in changes.items():
        if body is None:
            pg.sql("DELETE FROM rare_objects WHERE kind = %s AND key = %s", (kind.name, list(key)))
            continue
        database = key[:2] if kind.in_database else (None, None)
        try:
            pg.sql(_UPSERT, (kind.name, list(key), to_json(body), pg.now, *database))
        except ForeignKeyViolation as error:
            raise NoSuchObjectError(f"There is no database named {DatabaseName(*key[:2])}") from error


def select_kinds_of(pg: PgTx, database: DatabaseName) -> list[str]:
    """Return the kinds of objects that a database has."""
    rows = pg.sql("SELECT DISTINCT kind FROM rare_objects WHERE catalog = %s AND db = %s ORDER BY kind", database)
    return [kind for (kind,) in rows]


def has_object(pg: PgTx, kind: Kind) -> bool:
    """Return True if there is an object of this kind."""
    return bool(pg.sql("SELECT 1 FROM rare_objects WHERE kind = %s LIMIT 1", (kind.name,)))


def delete_older(pg: PgTx, kind: Kind, before: datetime) -> int:
    """Remove some objects of a kind that have not changed since an instant; return their number, at most `BATCH`."""
    pg.sql(
        "DELETE FROM rare_objects WHERE ctid = ANY(ARRAY(SELECT ctid FROM rare_objects WHERE kind = %s "
        "AND changed_at < %s LIMIT %s FOR UPDATE SKIP LOCKED))",
        (kind.name, before, BATCH),
    )
    return pg.rowcount
