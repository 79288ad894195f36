"""Rows of ``directory_changes``: directories that are being moved or removed.

A row says which places belong to a change, and its phase; its owner renews it while it works on the files. No other
object has such a place (ADR 0040).
"""

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from metastore.catalog.rules import locations
from metastore.db.engine import PgTx

LEASE = timedelta(seconds=60)
"""Silence after which a change has no owner."""
GRACE = timedelta(minutes=5)
"""The time for which places of a change without an owner stay blocked: its last step may still take effect."""
_CREATORS = 0x64697273  # "dirs": a call that gives a place to an object holds this lock, shared, until COMMIT.
# These are all overlapping places, and perhaps more: paths are compared as text.
_SELECT_NEAR = (
    "SELECT place FROM ({changing}) AS c WHERE starts_with(place, %(around)s) OR starts_with(%(around)s, place)"
)
_SELECT_TAKEN = f"SELECT pg_advisory_xact_lock_shared({_CREATORS}); " + _SELECT_NEAR.format(
    changing="SELECT source AS place FROM directory_changes WHERE phase <> 'undone' "
    "UNION ALL SELECT target FROM directory_changes WHERE phase <> 'done' AND target IS NOT NULL"
)
_SELECT_MOVING = _SELECT_NEAR.format(
    changing="SELECT unnest(ARRAY[source, target]) AS place FROM directory_changes "
    "WHERE target IS NOT NULL AND phase IN ('announced', 'begun', 'undoing')"
)


class Phase(StrEnum):
    """The phases of a change. A removal begins as done: the removal of ``source`` is left of it."""

    ANNOUNCED = "announced"
    BEGUN = "begun"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"


class Change(NamedTuple):
    """A move of a directory from ``source`` to ``target``, or its removal (None, or a place in the trash).

    ``table_id``: the owner; 0: no table.

    ``kept``: replicas may need its files.
    """

    id: int
    table_id: int
    source: str
    target: str | None
    kept: bool = False


def insert_move(pg: PgTx, owner: str, table_id: int, source: str, target: str, *, kept: bool) -> Change:
    """Announce a move; COMMIT before anything is touched."""
    return _insert(pg, owner, table_id, [source], [target], Phase.ANNOUNCED, kept=kept)[0]


def insert_removals(
    pg: PgTx, owner: str, table_id: int, places: Sequence[str], targets: Sequence[str | None] = (), *, kept: bool
) -> list[Change]:
    """Announce removals in the transaction that drops what is there. ``targets``: the places' own in the trash."""
    return _insert(pg, owner, table_id, places, targets, Phase.DONE, kept=kept) if places else []


def insert_hold(pg: PgTx, owner: str, place: str) -> Change:
    """Keep all objects out of a place that has none, from COMMIT on; if its owner dies, only the row goes."""
    return _insert(pg, owner, 0, [place], (), Phase.ANNOUNCED)[0]


def update_phase(pg: PgTx, change: Change, owner: str, before: Phase, after: Phase) -> bool:
    """Advance a change to its next phase and hold the row until COMMIT.

    Return False if it is not ours, or is in another phase.
    """
    pg.sql(
        "UPDATE directory_changes SET phase = %s, renewed_at = %s WHERE id = %s AND owner = %s AND phase = %s",
        (after, pg.now, change.id, owner, before),
    )
    return pg.rowcount == 1


def update_renewed(pg: PgTx, changes: Sequence[Change], owner: str) -> bool:
    """Renew the ownership of changes; False if another process took any as abandoned."""
    pg.sql(
        "UPDATE directory_changes SET renewed_at = %s WHERE id = ANY(%s) AND owner = %s",
        (pg.now, [change.id for change in changes], owner),
    )
    return pg.rowcount == len(changes)


def claim_abandoned(pg: PgTx, owner: str) -> list[tuple[Change, Phase, bool]]:
    """Take over the changes without an owner; return each with its phase, and whether the grace is over."""
    pg.sql("DELETE FROM directory_changes WHERE phase = 'announced' AND renewed_at < %s", (pg.now - LEASE,))
    rows = pg.sql(
        "UPDATE directory_changes SET owner = %s, renewed_at = %s, abandoned_at = coalesce(abandoned_at, %s),"
        " phase = CASE WHEN phase = 'begun' THEN 'undoing' ELSE phase END WHERE id IN ("
        "  SELECT id FROM directory_changes WHERE renewed_at < %s ORDER BY id FOR UPDATE SKIP LOCKED)"
        " RETURNING id, table_id, source, target, kept, phase, abandoned_at < %s",
        (owner, pg.now, pg.now, pg.now - LEASE, pg.now - GRACE),
    )
    return [(Change(*change), Phase(phase), grace_is_over) for *change, phase, grace_is_over in sorted(rows)]


def delete_changes(pg: PgTx, changes: Sequence[Change], owner: str) -> None:
    """Delete changes that are complete or undone, so that their places are free."""
    pg.sql(
        "DELETE FROM directory_changes WHERE id = ANY(%s) AND owner = %s", ([change.id for change in changes], owner)
    )


def select_taken(pg: PgTx, places: Sequence[str]) -> str | None:
    """Return one of these places that overlaps with a change, before an object is put there.

    Until COMMIT no removal overlooks an object that is put there now.
    """
    return _overlapping(pg, _SELECT_TAKEN, places)


def select_moving(pg: PgTx, places: Sequence[str]) -> str | None:
    """Return one of these places that overlaps with a directory that is being moved."""
    return _overlapping(pg, _SELECT_MOVING, places)


def lock_creators(pg: PgTx) -> None:
    """Wait for every call that gives a place to an object, and keep new ones from it until COMMIT."""
    pg.sql(f"SELECT pg_advisory_xact_lock({_CREATORS})")


def _overlapping(pg: PgTx, query: str, places: Sequence[str]) -> str | None:
    near = [place for (place,) in pg.sql(query, {"around": locations.common(places)})]
    return locations.overlapping(places, near) if near else None


def _insert(
    pg: PgTx,
    owner: str,
    table_id: int,
    sources: Sequence[str],
    targets: Sequence[str | None],
    phase: Phase,
    *,
    kept: bool = False,
) -> list[Change]:
    rows = pg.sql(
        "INSERT INTO directory_changes (table_id, source, target, phase, owner, renewed_at, kept)"
        " SELECT %s, source, target, %s, %s, %s, %s FROM unnest(%s::text[], %s::text[]) AS u (source, target)"
        " RETURNING id, table_id, source, target, kept",
        (table_id, phase, owner, pg.now, kept, list(sources), list(targets)),
    )
    return [Change(*row) for row in rows]
