"""The origin of the rows: a promoted standby, or a database brought back, may have forgotten ids.

Rule: a metastore works on the PostgreSQL and the timeline that are on record in the database, and checks each new
connection. Another timeline is a promoted standby or a recovery to an earlier time. It is accepted if the record says
that commits waited for a standby, since then no acknowledged commit is lost; else nothing is served until an operator
has advanced the ids (`metastore db restored`), because they would be allocated twice (ADR 0049).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg2.errors

from metastore.errors import UnavailableError


class OtherOriginError(UnavailableError):
    """Error: the database is not the one that was served before, and may have lost acknowledged commits."""


class DatabaseOrigin(NamedTuple):
    """A PostgreSQL; ``timeline`` is None on a standby. ``is_synchronous``: commits wait for a standby."""

    system: str
    timeline: int | None
    is_synchronous: bool


_HERE = """
SELECT (SELECT system_identifier::text FROM pg_control_system()),
       CASE WHEN NOT pg_is_in_recovery()
            THEN ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint END,
       current_setting('synchronous_standby_names') <> ''"""
_LOOK = f"""
SELECT here.*, noted.system, noted.timeline, noted.is_synchronous
FROM ({_HERE}) AS here(system, timeline, is_synchronous) LEFT JOIN database_origin AS noted ON true"""
_NOTE = f"""
INSERT INTO database_origin (id, system, timeline, is_synchronous) SELECT 1, here.* FROM ({_HERE}) AS here
ON CONFLICT (id) DO UPDATE SET system = EXCLUDED.system, timeline = EXCLUDED.timeline,
                               is_synchronous = EXCLUDED.is_synchronous"""


def require(sql: Callable[[str], list[tuple[Any, ...]]], seen: int) -> int:
    """Require that a session leads to the database that was served before; return its timeline.

    ``seen``: the highest so far.
    Raises: OtherOriginError, UnavailableError.
    """
    try:
        [(*recorded, system, timeline, is_synchronous)] = sql(_LOOK)
    except psycopg2.errors.UndefinedTable:  # There is no metastore yet.
        return seen
    here = DatabaseOrigin(*recorded)
    noted = None if system is None else DatabaseOrigin(system, timeline, is_synchronous)
    if must_be_noted(here, noted, seen):
        with suppress(psycopg2.errors.ReadOnlySqlTransaction):  # `sessions.check` reports the session's fault.
            sql(_NOTE)
    return here.timeline or seen


def note(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    """Record that this is the database to work on."""
    sql(_NOTE)


def must_be_noted(here: DatabaseOrigin, noted: DatabaseOrigin | None, seen: int) -> bool:
    """Return True if the origin of a usable session is to be recorded. Raises: OtherOriginError, UnavailableError."""
    if here.timeline is None:
        raise UnavailableError(
            "The PostgreSQL that answers is a standby, which cannot be written to: nothing was "
            "changed, try again when it is promoted or the primary is back."
        )
    if here.timeline < seen:
        raise OtherOriginError(
            f"The PostgreSQL that answers is an old primary: it is on timeline {here.timeline}, and a standby that was "
            f"promoted is on timeline {seen}. Nothing was changed. Stop the old one, or make it a standby."
        )
    if noted is None or noted == here:
        return noted is None
    if noted[:2] != here[:2] and not (noted.system == here.system and noted.is_synchronous):
        raise OtherOriginError(
            f"The database is not the one that was served before: it was PostgreSQL {noted.system} on timeline "
            f"{noted.timeline}, and is {here.system} on timeline {here.timeline}. A standby was promoted, or it was "
            "brought back to an earlier time, and commits had not waited for a standby. What was acknowledged may be "
            "lost, and ids would be given out twice, so nothing is served. Stop the servers and run `metastore db "
            "restored`; with --nothing-lost if it is known that nothing is."
        )
    return True
