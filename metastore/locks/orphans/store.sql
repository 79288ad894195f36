-- name: update_orphaned
UPDATE locks SET orphaned_at = metastore_now() + CASE WHEN at_once THEN %(more)s ELSE interval '0' END
  FROM (SELECT ext_id, int_id, at_once
          FROM locks JOIN unnest(%(gone)s::bigint[], %(looks)s::int[], %(at_once)s::boolean[])
                       AS seen (lock_id, looks, at_once) ON ext_id = lock_id
         WHERE txn_id = {no_txn} AND heartbeat_count = check_count AND check_count = looks
         ORDER BY ext_id, int_id FOR NO KEY UPDATE OF locks) AS left_alone
 WHERE locks.ext_id = left_alone.ext_id AND locks.int_id = left_alone.int_id;
SELECT DISTINCT ext_id FROM locks WHERE ext_id = ANY (%(here)s::bigint[]);
