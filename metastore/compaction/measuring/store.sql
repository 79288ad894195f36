-- name: select_measures
-- Ages are in seconds. A cleaning that waits because its table keeps its past, and not after a failure, has none. Of an entity its newest request counts. Rows are estimated: counting them all would cost more than they do.
WITH requests AS (
    SELECT catalog, db, "table", partition, id, state FROM compaction_queue WHERE type <> 'abort_txn_cleanup'
    UNION ALL SELECT catalog, db, "table", partition, id, state FROM completed_compactions),
latest AS (
    SELECT DISTINCT ON (catalog, db, "table", partition) state FROM requests
    ORDER BY catalog, db, "table", partition, id DESC),
queued AS (
    SELECT state, coalesce(nullif(pool, ''), 'default') AS pool,
           CASE WHEN state = 'initiated' THEN enqueued_at WHEN state = 'working' THEN started_at
                WHEN not_before IS NULL OR failures > 0 THEN coalesce(committed_at, enqueued_at) END AS since
    FROM compaction_queue WHERE type <> 'abort_txn_cleanup'),
seen AS (
    SELECT worker_id, worker_version, started_at, initiator_id, initiator_version, enqueued_at FROM compaction_queue
    UNION ALL SELECT worker_id, worker_version, started_at, initiator_id, initiator_version, enqueued_at
              FROM completed_compactions),
aborts AS (
    SELECT count(DISTINCT c.txn_id) AS txns FROM txn_components AS c
    JOIN txns AS t ON t.id = c.txn_id AND t.state = 'aborted'
    GROUP BY c.catalog, c.db, c."table", c.partition)
SELECT 'compactions', state, count(*)::float FROM latest GROUP BY state
UNION ALL SELECT 'oldest', state, coalesce(extract(epoch FROM %(now)s - min(since)), 0) FROM queued GROUP BY state
UNION ALL SELECT 'pool_waiting', pool, count(*) FILTER (WHERE state = 'initiated') FROM queued GROUP BY pool
UNION ALL SELECT 'pool_working', pool, count(*) FILTER (WHERE state = 'working') FROM queued GROUP BY pool
UNION ALL SELECT 'pool_oldest', pool, extract(epoch FROM %(now)s - min(since)) FROM queued WHERE state = 'initiated' GROUP BY pool
UNION ALL SELECT 'cleaning', '', coalesce(extract(epoch FROM %(now)s - min(cleaner_started_at)), 0)
          FROM compaction_queue WHERE state = 'ready_for_cleaning'
UNION ALL (SELECT 'workers', left(coalesce(worker_version, 'unknown'), 40), count(DISTINCT worker_id)
           FROM seen WHERE started_at > %(now)s - %(window)s GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 20)
UNION ALL (SELECT 'initiators', left(coalesce(initiator_version, 'unknown'), 40), count(DISTINCT initiator_id)
           FROM seen WHERE enqueued_at > %(now)s - %(window)s AND initiator_id NOT LIKE '%%-manual'
           GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT 20)
UNION ALL SELECT m.what, m.kind, m.value FROM (
              SELECT CASE type WHEN {replication} THEN 'replication' ELSE 'other' END AS kind, count(*), min(id)
              FROM txns WHERE state = 'open' AND NOT emptied GROUP BY 1) AS t (kind, number, oldest)
          CROSS JOIN LATERAL (VALUES ('open_txns', kind, number::float), ('open_txn_id', kind, oldest)) AS m (what, kind, value)
UNION ALL SELECT 'open_txn', CASE type WHEN {replication} THEN 'replication' ELSE 'other' END,
                 extract(epoch FROM %(now)s - min(started_at))
          FROM txns WHERE state = 'open' AND NOT emptied GROUP BY 2
UNION ALL SELECT 'aborted_txns', '', count(*) FROM txns WHERE state = 'aborted' AND NOT emptied
UNION ALL SELECT 'aborted_txn_id', '', coalesce(min(id), 0) FROM txns WHERE state = 'aborted' AND NOT emptied
UNION ALL SELECT 'aborted_txn', '', coalesce(extract(epoch FROM %(now)s - min(started_at)), 0)
          FROM txns WHERE state = 'aborted' AND NOT emptied
UNION ALL SELECT 'many_aborts', '', count(*) FROM aborts WHERE txns > %(many)s
UNION ALL SELECT 'obsolete_bytes', '', coalesce(sum(obsolete_bytes), 0) FROM delta_measures
UNION ALL SELECT 'locks', '', count(*) FROM locks
UNION ALL SELECT 'lock', '', coalesce(extract(epoch FROM %(now)s - min(acquired_at)), 0) FROM locks
UNION ALL SELECT 'lock_wait', '', coalesce(extract(epoch FROM %(now)s - min(requested_at)), 0) FROM locks WHERE state = 'waiting'
UNION ALL SELECT 'databases', '', count(*) FROM databases
UNION ALL SELECT 'tables', '', count(*) FROM tables
UNION ALL SELECT 'partitions', '', greatest(reltuples, 0) FROM pg_class WHERE oid = 'partitions'::regclass
UNION ALL SELECT 'rows', relname, greatest(reltuples, 0) FROM pg_class
          WHERE oid IN ('txn_write_ids'::regclass, 'completed_txn_components'::regclass);

-- name: select_writes
-- Who may have automatic compaction switched off; the rule that says who has is in Python.
SELECT w.catalog, w.db, w."table", w.writes, d.parameters, t.parameters
FROM (SELECT catalog, db, "table", count(DISTINCT txn_id) AS writes FROM completed_txn_components
      WHERE at > %(since)s GROUP BY catalog, db, "table") AS w
JOIN tables AS t ON (t.catalog, t.db, t.name) = (w.catalog, w.db, w."table")
JOIN databases AS d ON (d.catalog, d.name) = (w.catalog, w.db)
WHERE concat(d.parameters::text, t.parameters::text) ILIKE '%%"' || %(key)s || '"%%'
ORDER BY w.writes DESC, 1, 2, 3;

-- name: upsert_deltas
INSERT INTO delta_measures AS m (at, catalog, db, "table", partition, deltas, small_deltas, obsolete_deltas, files, bytes,
                                 obsolete_bytes, usual_score)
SELECT %s, n.*, n.files + n.bytes / {cost}
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::int[], %s::bigint[], %s::bigint[],
            %s::bigint[]) AS n (catalog, db, "table", partition, deltas, small_deltas, obsolete_deltas, files, bytes, obsolete_bytes)
WHERE (deltas, small_deltas, obsolete_deltas, files, bytes, obsolete_bytes) <> (0, 0, 0, 0, 0, 0) OR EXISTS (
    SELECT FROM delta_measures AS k
    WHERE (k.catalog, k.db, k."table", k.partition) = (n.catalog, n.db, n."table", n.partition))
ORDER BY 2, 3, 4, 5
ON CONFLICT (catalog, db, "table", partition) DO UPDATE
SET at = excluded.at, deltas = excluded.deltas, small_deltas = excluded.small_deltas,
    obsolete_deltas = excluded.obsolete_deltas, files = excluded.files, bytes = excluded.bytes,
    obsolete_bytes = excluded.obsolete_bytes, usual_score = {usual};

-- name: select_stale
SELECT m.catalog, m.db, m."table", m.partition FROM delta_measures AS m
WHERE m.at < %(before)s
   OR EXISTS (SELECT 1 FROM compaction_queue AS q
              WHERE (q.catalog, q.db, q."table", q.partition) = (m.catalog, m.db, m."table", m.partition)
                AND q.committed_at >= m.at)
   OR EXISTS (SELECT 1 FROM completed_compactions AS c
              WHERE (c.catalog, c.db, c."table", c.partition) = (m.catalog, m.db, m."table", m.partition)
                AND c.state = 'succeeded' AND c.ended_at >= m.at)
ORDER BY m.at LIMIT %(limit)s;
