-- name: select_loads
-- What only the Cleaner has to do is nobody's load, nor is what was never queued.
WITH requests AS (
    SELECT pool, state, enqueued_at, started_at, committed_at, NULL::timestamptz AS ended_at, worker_id
    FROM compaction_queue WHERE type <> 'abort_txn_cleanup' AND NOT properties ? %(dropped)s
    UNION ALL
    SELECT pool, state, enqueued_at, started_at, committed_at, ended_at, worker_id
    FROM completed_compactions
    WHERE state IN ('succeeded', 'failed', 'refused') AND type <> 'abort_txn_cleanup' AND NOT properties ? %(dropped)s)
SELECT coalesce(nullif(pool, ''), 'default'),
       count(*) FILTER (WHERE state = 'initiated'),
       count(*) FILTER (WHERE state = 'working'),
       min(enqueued_at) FILTER (WHERE state = 'initiated'),
       count(*) FILTER (WHERE enqueued_at >= %(since)s),
       count(*) FILTER (WHERE started_at IS NOT NULL AND coalesce(committed_at, ended_at) >= %(since)s),
       extract(epoch FROM avg(coalesce(committed_at, ended_at) - started_at)
               FILTER (WHERE coalesce(committed_at, ended_at) >= %(since)s))
FROM requests GROUP BY 1 ORDER BY 1;
