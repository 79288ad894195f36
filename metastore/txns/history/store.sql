-- name: evidence
SELECT a.id, r.from_history,
    EXISTS (SELECT FROM completed_txn_components WHERE txn_id = a.id),
    coalesce((SELECT last_id >= a.id FROM skipped_txn_ids WHERE first_id <= a.id ORDER BY first_id DESC LIMIT 1),
             false),
    c.next_txn_id - 1, coalesce((SELECT complete_above FROM txn_history_floor), 0), {record}
FROM txn_counter AS c CROSS JOIN unnest(%(ids)s::bigint[]) AS a(id) LEFT JOIN LATERAL (
    SELECT false AS from_history, {record} FROM txns WHERE id = a.id
    UNION ALL SELECT true, {record} FROM txn_history WHERE txn_id = a.id
    ORDER BY from_history LIMIT 1) AS r ON true;

-- name: life
-- One statement, hence as of one instant: what an abort remembered, else what a commit remembered or has left, else what
-- is declared and held now.
WITH wanted AS (SELECT %(txn)s::bigint AS txn_id),
declaring AS (
    SELECT txn_id FROM txns JOIN wanted ON id = txn_id
    WHERE state <> 'committed' AND NOT EXISTS (SELECT FROM txn_history AS h WHERE h.txn_id = txns.id)),
lists AS (
    SELECT writes, write_count, locks, lock_count FROM txn_history JOIN wanted USING (txn_id)
    UNION ALL
    SELECT wrote.list, wrote.size, held.list, held.size
    FROM declaring CROSS JOIN LATERAL {declared} AS wrote CROSS JOIN LATERAL {held} AS held
    UNION ALL
    SELECT list, size, '[]', 0
    FROM {written} AS written
    WHERE NOT EXISTS (SELECT FROM declaring) AND NOT EXISTS (SELECT FROM txn_history JOIN wanted USING (txn_id)))
SELECT metastore_now(), writes, write_count, locks, lock_count, evidence.*
FROM lists CROSS JOIN ({evidence}) AS evidence;

-- name: of_table
-- The latest commits of a table with write ids above "after": those that are remembered, and those whose rows are there;
-- aborted transactions that are remembered besides, where they are wanted.
WITH latest AS (
    SELECT txn_id, max(write_id) AS write_id FROM (
        SELECT c.txn_id, c.write_id FROM completed_txn_components AS c
        WHERE c.catalog = %(catalog)s AND c.db = %(db)s AND c."table" = %(table)s AND c.write_id > %(after)s
        UNION
        SELECT w.txn_id, w.write_id FROM txn_write_ids AS w JOIN txns AS t ON t.id = w.txn_id
        WHERE w.catalog = %(catalog)s AND w.db = %(db)s AND w."table" = %(table)s AND w.write_id > %(after)s
          AND t.state = 'committed'
        UNION
        SELECT h.txn_id, (w ->> 5)::bigint FROM txn_history AS h CROSS JOIN LATERAL jsonb_array_elements(h.writes) AS w
        WHERE (h.state = 'committed' OR %(aborted)s) AND h.writes @> jsonb_build_array({the_table}) AND w @> {the_table}
          AND w ->> 0 = %(catalog)s AND w ->> 1 = %(db)s AND w ->> 2 = %(table)s AND (w ->> 5)::bigint > %(after)s
    ) AS known GROUP BY txn_id ORDER BY write_id DESC LIMIT %(limit)s),
wanted AS (
    SELECT txn_id FROM latest WHERE NOT EXISTS (SELECT FROM txn_history AS h WHERE h.txn_id = latest.txn_id)),
wrote AS (
    SELECT txn_id, partition, operation, write_id, true AS is_complete FROM ({wrote}) AS found
    WHERE catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s
    UNION ALL
    SELECT h.txn_id, w ->> 3, w ->> 4, (w ->> 5)::bigint, jsonb_array_length(h.writes) = h.write_count
    FROM latest JOIN txn_history AS h USING (txn_id) CROSS JOIN LATERAL jsonb_array_elements(h.writes) AS w
    WHERE w ->> 0 = %(catalog)s AND w ->> 1 = %(db)s AND w ->> 2 = %(table)s)
SELECT wrote.write_id, txn_id, r."user", r.host, r.agent_info, r.started_at, r.ended_at,
       array_agg(DISTINCT wrote.operation ORDER BY wrote.operation),
       count(DISTINCT wrote.partition) FILTER (WHERE wrote.partition <> ''), bool_and(wrote.is_complete),
       (r.rows ->> 3)::bigint, (r.rows ->> 4)::bigint, r.state = 'aborted'
FROM wrote CROSS JOIN LATERAL (
    SELECT state, "user", host, agent_info, started_at, ended_at, (
        SELECT one FROM jsonb_array_elements(written_rows) AS one
        WHERE one ->> 0 = %(catalog)s AND one ->> 1 = %(db)s AND one ->> 2 = %(table)s LIMIT 1) AS rows
    FROM (SELECT state, "user", host, agent_info, started_at, ended_at, written_rows FROM txns WHERE id = txn_id
          UNION ALL SELECT state, "user", host, agent_info, started_at, ended_at, written_rows FROM txn_history AS h
          WHERE h.txn_id = wrote.txn_id LIMIT 1) AS record) AS r
WHERE wrote.write_id IS NOT NULL
GROUP BY wrote.write_id, txn_id, r.state, r."user", r.host, r.agent_info, r.started_at, r.ended_at, r.rows
ORDER BY wrote.write_id DESC;

-- name: forget
-- Commits that wrote nothing, as most reads, push no others out.
WITH removed AS (
    DELETE FROM txn_history WHERE txn_id = ANY(ARRAY(
        SELECT txn_id FROM (VALUES ('aborted', true), ('committed', true), ('committed', false)) AS kinds(state, wrote)
        CROSS JOIN LATERAL (
            SELECT txn_id FROM txn_history AS h WHERE h.state = kinds.state AND ended_at < %(before)s
            UNION
            (SELECT txn_id FROM txn_history AS h
             WHERE h.state = kinds.state AND (h.state = 'aborted' OR (h.write_count > 0) = kinds.wrote)
             ORDER BY ended_at DESC OFFSET %(keep)s)) AS old
        LIMIT {batch}))
    RETURNING txn_id, state),
floor AS (
    INSERT INTO txn_history_floor SELECT 1, max(txn_id) FROM removed WHERE state = 'aborted' HAVING count(*) > 0
    ON CONFLICT (id) DO UPDATE SET complete_above = greatest(txn_history_floor.complete_above, excluded.complete_above))
SELECT count(*) FROM removed;
