"""A recorded load: the commits that a database of ours remembers, for `benchmarks.compaction_policy`.

The times of writes to each table and partition are known exactly, for as long as ended transactions are remembered
(`metastore.txn.history.retention`). All else is an average: a delta is as large as those that the Initiator saw last, a
base as the statistics have it, a table is read as often as it was opened lately, and there are as many Workers as are
on record. Unknown values are those of the made-up loads: 1 MB, 1 GB, one read an hour.
"""

from collections.abc import Iterator
from typing import NamedTuple

from metastore.compaction.queue.store import opens
from metastore.db.engine import Database
from metastore.ids import TableName

DELTA, BASE, READS = 10**6, 10**9, 1.0
_WRITES = """
WITH writes AS (
    SELECT txn_id, w ->> 0 AS catalog, w ->> 1 AS db, w ->> 2 AS "table", w ->> 3 AS partition, ended_at AS at,
           w ->> 4 IN ('u', 'd') AS deletes
    FROM txn_history CROSS JOIN LATERAL jsonb_array_elements(writes) AS w WHERE state = 'committed'
    UNION ALL SELECT txn_id, catalog, db, "table", partition, at, update_delete FROM completed_txn_components
    WHERE txn_id <> 0),
once AS (
    SELECT catalog, db, "table", partition, min(at) AS at, bool_or(deletes) AS deletes
    FROM writes GROUP BY txn_id, catalog, db, "table", partition)
SELECT o.catalog, o.db, o."table", o.partition,
       array_agg(extract(epoch FROM o.at - (SELECT min(at) FROM once))::float ORDER BY o.at),
       2 * count(*) FILTER (WHERE o.deletes) > count(*), max(m.bytes / nullif(m.deltas, 0)),
       max((coalesce(p.parameters, t.parameters) ->> 'totalSize')::bigint)
FROM once AS o
LEFT JOIN delta_measures AS m USING (catalog, db, "table", partition)
LEFT JOIN tables AS t ON (t.catalog, t.db, t.name) = (o.catalog, o.db, o."table")
LEFT JOIN partitions AS p ON (p.table_id, p.name) = (t.id, o.partition)
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""
_WORKERS = "SELECT greatest(1, count(DISTINCT worker_id)) FROM completed_compactions WHERE committed_at IS NOT NULL"


class Written(NamedTuple):
    """A table or partition: seconds from the first commit on record to each of its own, and averages."""

    name: str
    moments: tuple[float, ...]
    delta: float
    base: float
    reads: float
    deletes: bool


class Record(NamedTuple):
    """The recorded load of a database."""

    written: tuple[Written, ...]
    workers: int

    @property
    def days(self) -> float:
        """The days from the first commit to the last."""
        return max((each.moments[-1] for each in self.written), default=0.0) / 86400


def record(url: str) -> Record:
    """Read the record of a database. Nothing is changed."""
    database = Database(url, pool_size=1)
    try:
        written = tuple(_written(database))
        [(workers,)] = database.once(_WORKERS)
    finally:
        database.close()
    return Record(written, workers)


def _written(database: Database) -> Iterator[Written]:
    with database.begin(snapshot=True) as pg:
        rows = pg.sql(_WRITES)
        tables = {TableName(*row[:3]) for row in rows}
        reads = opens.select_opens(pg, tables) if tables else {}
    for catalog, db, name, partition, moments, deletes, delta, base in rows:
        table = TableName(catalog, db, name)
        place = f"{table}/{partition}" if partition else str(table)
        yield Written(place, tuple(moments), float(delta or DELTA), float(base or BASE), reads[table] or READS, deletes)
