-- name: past
SELECT n.known_since, coalesce(n.next_write_id, 1),
    ARRAY(SELECT write_id FROM txn_write_ids JOIN txns AS t ON t.id = txn_id
          WHERE {of_table} AND t.state <> 'aborted'
            AND (t.state = 'open' OR date_trunc('milliseconds', t.ended_at) > %(at)s)),
    ARRAY(SELECT write_id FROM txn_write_ids JOIN txns AS t ON t.id = txn_id WHERE {of_table} AND t.state = 'aborted'),
    ARRAY(SELECT one.write_id FROM write_id_times, unnest(write_ids, committed_at) AS one(write_id, at)
          WHERE {of_table} AND latest > %(at)s AND date_trunc('milliseconds', one.at) > %(at)s)
FROM (SELECT) AS nothing LEFT JOIN next_write_ids AS n ON {of_table};

-- name: forget
WITH gone AS (
    DELETE FROM write_id_times WHERE id = ANY(ARRAY(
        SELECT id FROM (SELECT id, latest, sum(cardinality(write_ids)) OVER (ORDER BY latest DESC, id DESC) AS newer
                        FROM write_id_times) AS ranked
        WHERE latest < %(before)s OR newer > %(keep)s ORDER BY latest, id LIMIT %(limit)s))
    RETURNING catalog, db, "table", latest, cardinality(write_ids) AS size),
tops AS (SELECT catalog, db, "table", max(latest) AS top FROM gone GROUP BY catalog, db, "table"),
mine AS (SELECT catalog, db, "table", top FROM next_write_ids JOIN tops USING (catalog, db, "table")
         ORDER BY catalog, db, "table" FOR UPDATE OF next_write_ids),
raised AS (
    UPDATE next_write_ids AS n SET known_since = greatest(n.known_since, mine.top)
    FROM mine WHERE n.catalog = mine.catalog AND n.db = mine.db AND n."table" = mine."table")
SELECT coalesce(sum(size), 0), count(*) FROM gone;
