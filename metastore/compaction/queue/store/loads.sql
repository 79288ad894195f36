-- name: select_loads
-- What only the Cleaner has to do is nobody's load, nor is what was never queued.
WITH requests AS (
    SELECT pool, state, enqueued_at, started_at, committed_at, NULL::timestamptz AS ended_at
    FROM compaction_queue WHERE type <> 'abort_txn_cleanup' AND NOT properties ? %(dropped)s
    UNION ALL
    SELECT pool, state, enqueued_at, started_at, committed_at, ended_at
    FROM completed_compactions
    WHERE state IN ('succeeded', 'failed', 'refused') AND type <> 'abort_txn_cleanup' AND NOT properties ? %(dropped)s)
SELECT coalesce(nullif(pool, ''), 'default'),
       count(*) FILTER (WHERE state = 'initiated'),
       count(*) FILTER (WHERE state = 'working'),
       count(*) FILTER (WHERE enqueued_at >= %(since)s),
       extract(epoch FROM avg(coalesce(committed_at, ended_at) - started_at)
               FILTER (WHERE coalesce(committed_at, ended_at) >= %(since)s))::float8
FROM requests GROUP BY 1;
