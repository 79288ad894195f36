-- name: open
WITH counter AS (
    UPDATE txn_counter SET next_txn_id = next_txn_id + %(total)s
    WHERE next_txn_id + %(total)s <= reserved_until AND EXISTS (SELECT FROM txn_id_block)
    RETURNING next_txn_id - %(total)s AS first_id),
opened AS (
    INSERT INTO txns (id, state, type, "user", host, agent_info, started_at, last_heartbeat_at)
    SELECT first_id + start + place, 'open', type, "user", host, agent_info, metastore_now(), metastore_now()
    FROM counter, unnest(%(starts)s::bigint[], %(sizes)s::bigint[], %(types)s::smallint[], %(users)s::text[],
                         %(hosts)s::text[], %(agents)s::text[]) AS wanted(start, size, type, "user", host, agent_info),
         generate_series(0, size - 1) AS place)
SELECT first_id, metastore_now() FROM counter;

-- name: reserve
SELECT FROM txn_counter FOR UPDATE;
WITH position AS (
    SELECT CASE WHEN EXISTS (SELECT FROM txn_id_block) THEN next_txn_id
                ELSE greatest(next_txn_id, reserved_until) END AS next FROM txn_counter),
marked AS (INSERT INTO txn_id_block VALUES (1) ON CONFLICT DO NOTHING),
skipped AS (INSERT INTO skipped_txn_ids SELECT next_txn_id, position.next - 1, metastore_now()
            FROM txn_counter, position WHERE next_txn_id < position.next)
UPDATE txn_counter SET next_txn_id = position.next, reserved_until = greatest(reserved_until, position.next + %(ids)s)
FROM position;

-- name: heartbeat_with_locks
WITH alive AS (
    SELECT id FROM txns WHERE id = ANY(%(txns)s::bigint[]) AND state = 'open' ORDER BY id FOR NO KEY UPDATE),
beaten AS (
    UPDATE txns SET last_heartbeat_at = metastore_now(), heartbeat_count = heartbeat_count + 1,
                    longest_gap = greatest(longest_gap, metastore_now() - last_heartbeat_at)
    FROM alive WHERE txns.id = alive.id RETURNING txns.id),
mine AS (
    SELECT ext_id, int_id FROM locks WHERE ext_id = ANY(%(locks)s::bigint[]) AND (SELECT count(*) FROM beaten) >= 0
    ORDER BY ext_id, int_id FOR NO KEY UPDATE),
held AS (
    UPDATE locks SET last_heartbeat_at = metastore_now(), heartbeat_count = heartbeat_count + 1
    FROM mine WHERE locks.ext_id = mine.ext_id AND locks.int_id = mine.int_id RETURNING locks.ext_id)
SELECT (SELECT array_agg(id) FROM beaten), (SELECT array_agg(DISTINCT ext_id) FROM held);

-- name: abort
-- An owner who aborts what somebody else had aborted says that he publishes nothing any more. He may have published
-- something in between: the Cleaner looks once more, and then forgets it.
-- Who had a write id of a table and never said what he writes there may have written anywhere in it (operation c).
WITH asked AS (
    SELECT id, code, reason, code = {by_another} AS by_another
    FROM unnest(%(ids)s::bigint[], %(codes)s::int[], %(reasons)s::text[]) AS a(id, code, reason)),
ended AS (
    UPDATE txns SET state = 'aborted', ended_at = metastore_now(), abort_code = a.code, abort_reason = a.reason,
                    may_publish = a.by_another
    FROM asked AS a WHERE txns.id = a.id AND state = 'open' RETURNING txns.*),
settled AS (
    UPDATE txns SET may_publish = false
    FROM asked AS a WHERE txns.id = a.id AND state = 'aborted' AND may_publish AND NOT a.by_another
    RETURNING txns.id),
looked_at_again AS (
    UPDATE txn_components SET cleaned = false WHERE cleaned AND txn_id = ANY(ARRAY(SELECT id FROM settled))),
unnamed AS (
    INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
    SELECT txn_id, catalog, db, "table", '', 'c', write_id FROM txn_write_ids AS w
    WHERE txn_id = ANY(ARRAY(SELECT id FROM ended)) AND NOT EXISTS (
        SELECT FROM txn_components AS c
        WHERE c.txn_id = w.txn_id AND c.catalog = w.catalog AND c.db = w.db AND c."table" = w."table")
    ON CONFLICT DO NOTHING),
{remembered},
unmapped AS (DELETE FROM repl_txn_map USING ended WHERE target_txn_id = ended.id RETURNING target_txn_id, policy),
{release}
SELECT t.id, t.state, t.type, m.policy
FROM txns AS t LEFT JOIN unmapped AS m ON m.target_txn_id = t.id WHERE t.id = ANY(%(ids)s::bigint[]);

-- name: select_latest_conflict
WITH mine AS (SELECT * FROM txn_components WHERE txn_id = %(txn)s AND operation IN ('u', 'd'))
SELECT coalesce(max(txn_id), 0) FROM (
    SELECT w.txn_id FROM mine JOIN write_sets AS w USING (catalog, db, "table", partition)
    WHERE w.operation <> 'i' AND w.commit_id >= %(txn)s
    UNION ALL
    SELECT w.txn_id FROM mine JOIN write_sets AS w USING (catalog, db, "table")
    WHERE mine.partition = '' AND w.operation <> 'i' AND w.commit_id >= %(txn)s) AS theirs;
