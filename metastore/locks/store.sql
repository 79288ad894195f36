-- name: ahead_of_wanted
-- Locks that may block the requests in "wanted" (grouped per table, so that a request for thousands of partitions probes
-- once): the matrix and the hierarchy without their exceptions. LATERAL makes it one index probe for each wanted table,
-- however many locks others have. Index: locks (catalog, db, table, type).
SELECT DISTINCT {selected}
  FROM (SELECT ext_id, txn_id, catalog, db, "table", CASE WHEN count(*) = 1 THEN min(partition) ELSE '' END,
               ARRAY(SELECT m.blocking FROM (VALUES {compatibility}) AS m (wanting, blocking)
                      WHERE m.wanting = wanted.type)
          FROM wanted GROUP BY ext_id, txn_id, catalog, db, "table", type)
         AS w (ext_id, txn_id, catalog, db, "table", partition, blocking)
 CROSS JOIN LATERAL (
        SELECT * FROM locks WHERE w."table" <> '' AND catalog = w.catalog AND db = w.db
           AND "table" = ANY (ARRAY['', w."table"]) AND type = ANY (w.blocking)
        UNION ALL
        SELECT * FROM locks WHERE w."table" = '' AND catalog = w.catalog AND db = w.db
           AND type = ANY (w.blocking)) AS l
 WHERE (w.partition = '' OR l.partition = ANY (ARRAY['', w.partition]))
   AND (w.ext_id IS NULL OR l.ext_id < w.ext_id)
   AND (w.txn_id = {no_txn} OR l.txn_id <> w.txn_id);

-- name: select_tail
WITH wanted AS (
  SELECT NULL::bigint AS ext_id, *
    FROM unnest(%(w0)s::bigint[], %(w1)s::text[], %(w2)s::text[], %(w3)s::text[], %(w4)s::text[],
                %(w5)s::text[]) AS w (txn_id, catalog, db, "table", partition, type))
{ahead_of_wanted}
UNION ALL
SELECT {id}, nextval('lock_ext_id'), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM generate_series(1, %(count)s::int)
UNION ALL
SELECT {txn}, id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, state, NULL, NULL, NULL, NULL, NULL
  FROM txns WHERE id = ANY (%(txns)s::bigint[]);

-- name: insert_locks
INSERT INTO locks (
  ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host, agent_info,
  blocked_by_ext_id, blocked_by_int_id, requested_at, acquired_at, last_heartbeat_at)
SELECT l.*, metastore_now(), CASE WHEN l.state = '{acquired}' THEN metastore_now() END,
       CASE WHEN l.txn_id = {no_txn} THEN metastore_now() END
  FROM unnest(%(l0)s::bigint[], %(l1)s::int[], %(l2)s::bigint[], %(l3)s::text[], %(l4)s::text[], %(l5)s::text[],
              %(l6)s::text[], %(l7)s::text[], %(l8)s::text[], %(l9)s::text[], %(l10)s::text[], %(l11)s::text[],
              %(l12)s::bigint[], %(l13)s::int[])
    AS l (ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host, agent_info,
          blocked_by_ext_id, blocked_by_int_id);

-- name: mark_locks
-- So that this process hears when they go. A row that somebody works on stays without the mark: who holds a database's
-- tail waits for no row, and whoever looks again marks it (waits/store.py).
UPDATE locks SET watched_by = CASE WHEN locks.watched_by IS NULL THEN current_setting('metastore.process') ELSE '*' END
  FROM (SELECT ext_id, int_id FROM unnest(%(m0)s::bigint[], %(m1)s::int[]) AS m (ext_id, int_id)
          JOIN locks USING (ext_id, int_id) WHERE NOT {watched}
           FOR NO KEY UPDATE OF locks SKIP LOCKED) AS unmarked
 WHERE locks.ext_id = unmarked.ext_id AND locks.int_id = unmarked.int_id;

-- name: select_requests
WITH mine AS MATERIALIZED (SELECT * FROM locks WHERE ext_id = ANY (%(ids)s::bigint[])),
     wanted AS (SELECT * FROM mine WHERE state = '{waiting}')
{ahead_of_wanted}
UNION ALL
SELECT {mine}, ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host,
       blocked_by_ext_id, blocked_by_int_id, NULL FROM mine
UNION ALL
SELECT {txn}, id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, state, NULL, NULL, NULL, NULL, NULL
  FROM txns WHERE id IN (SELECT txn_id FROM mine);

-- name: grant_requests
-- Those with nobody ahead who may be in the way; a request that this leaves out may be granted all the same by the rules.
UPDATE locks SET state = '{acquired}', acquired_at = metastore_now(), blocked_by_ext_id = NULL, blocked_by_int_id = NULL
 WHERE ext_id = ANY (%(ids)s::bigint[]) AND state = '{waiting}'
   AND (txn_id = {no_txn} OR EXISTS (SELECT FROM txns WHERE txns.id = locks.txn_id AND txns.state = 'open'))
   AND ext_id <> ALL (ARRAY(
         WITH wanted AS MATERIALIZED (
           SELECT * FROM locks WHERE ext_id = ANY (%(ids)s::bigint[]) AND state = '{waiting}')
         {waiting_for}))
RETURNING set_config('synchronous_commit', 'on', true);

-- name: lock_tail
SELECT pg_advisory_xact_lock({advisory_class}, %(key)s);
SELECT txn_id <> {no_txn} AND EXISTS (
         SELECT FROM txn_components AS c WHERE c.txn_id = l.txn_id AND c.catalog = l.catalog AND c.db = l.db
            AND (l."table" = '' OR c."table" = l."table")) AS declares,
       ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host
  FROM locks AS l
 WHERE catalog = %(catalog)s AND db = %(db)s AND (%(whole)s OR "table" = ANY (%(tables)s))
 ORDER BY ext_id, int_id;

-- name: whole_requests
mine AS MATERIALIZED (
    SELECT ext_id, int_id FROM locks WHERE {candidates} ORDER BY ext_id, int_id FOR UPDATE SKIP LOCKED),
complete AS MATERIALIZED (
    SELECT ext_id FROM mine GROUP BY ext_id
    HAVING count(*) = (SELECT count(*) FROM locks WHERE locks.ext_id = mine.ext_id)),
gone AS (
    DELETE FROM locks WHERE ext_id = ANY (ARRAY(SELECT ext_id FROM complete)) RETURNING ext_id, int_id);

-- name: delete_expired
WITH visited AS MATERIALIZED (
    SELECT ext_id, txn_id, last_heartbeat_at FROM locks WHERE ext_id > %(after)s ORDER BY ext_id
     LIMIT %(limit)s),
{whole}
SELECT (SELECT count(*) FROM gone), count(*), max(ext_id),
       min(last_heartbeat_at - %(before)s) FILTER (WHERE txn_id = {no_txn})
  FROM visited;
