"""Rows of lock requests without a transaction whose client may be gone (ADR 0045)."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from metastore.db.arrays import bigints
from metastore.db.engine import Database
from metastore.db.statements import Statements
from metastore.locks.orphans.rules import Gone
from metastore.locks.rules import NO_TXN
from metastore.locks.store import whole

_SQL = Statements(__file__)

ORPHANS = 1000

_LEFT_ALONE = """(orphaned_at < metastore_now() - %(silence)s
    AND last_heartbeat_at < metastore_now() - %(silence)s AND heartbeat_count = check_count)"""

_UPDATE_ORPHANED = _SQL.text("update_orphaned", no_txn=NO_TXN)


def update_orphaned(db: Database, gone: Sequence[Gone], here: Collection[int], more: timedelta) -> set[int]:
    """Record since when the connections of requests without a transaction are ``gone``.

    Return those of ``here`` that remain.

    Requests with a heartbeat, or with a check that this process did not see, are left out. ``more``: extra time for
    requests whose connection ended at once.
    """
    rows = db.once(
        _UPDATE_ORPHANED,
        {
            "gone": bigints(request.lock_id for request in gone),
            "looks": [request.looks for request in gone],
            "at_once": [request.at_once for request in gone],
            "here": bigints(here),
            "more": more,
        },
        durable=False,
    )
    return {ext_id for (ext_id,) in rows}


def update_spared(db: Database) -> None:
    """Restart the time-out of all requests whose connection is gone. Index: locks_orphaned."""
    db.once(
        """
        UPDATE locks SET orphaned_at = metastore_now()
          FROM (SELECT ext_id, int_id FROM locks WHERE orphaned_at < metastore_now()
                 ORDER BY ext_id, int_id FOR NO KEY UPDATE) AS spared
         WHERE locks.ext_id = spared.ext_id AND locks.int_id = spared.int_id""",
        durable=False,
    )


def delete_orphans(db: Database, silence: timedelta, limit: int = ORPHANS) -> set[int]:
    """Delete requests whose connection is gone, without a heartbeat or a check for ``silence``.

    Only the first are deleted: as many as have up to ``limit`` components, and always whole requests.
    """
    rows = db.once(
        f"""
        WITH first AS MATERIALIZED (
            SELECT ext_id FROM locks WHERE {_LEFT_ALONE} ORDER BY orphaned_at LIMIT %(limit)s),
        {whole(f"ext_id = ANY (ARRAY(SELECT ext_id FROM first)) AND {_LEFT_ALONE}")}
        SELECT DISTINCT ext_id FROM gone""",
        {"silence": silence, "limit": limit},
        durable=False,
    )
    return {ext_id for (ext_id,) in rows}
