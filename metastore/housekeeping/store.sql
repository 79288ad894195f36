-- name: delete_write_ids
WITH gone AS (
    DELETE FROM txn_write_ids WHERE ctid = ANY(ARRAY(
        SELECT w.ctid FROM txn_write_ids AS w JOIN txns AS t ON t.id = w.txn_id
        WHERE w.txn_id < {oldest_reader} AND t.state = 'committed' AND t.commit_id < {oldest_reader}
        ORDER BY w.txn_id LIMIT %s FOR UPDATE OF w SKIP LOCKED))
    RETURNING catalog, db, "table", write_id, txn_id),
{commits_remembered}
{record_times}
{remember_purged}
SELECT count(*) FROM gone;

-- name: delete_duplicate_components
WITH visited AS MATERIALIZED (
    SELECT ctid AS place, txn_id, catalog, db, "table", partition, write_id IS NULL AS without,
           coalesce(write_id, txn_id) AS age, update_delete
    FROM completed_txn_components
    WHERE (catalog, db, "table", partition) {compares} %(start)s
    ORDER BY catalog, db, "table", partition LIMIT %(limit)s),
settled AS (
    SELECT v.*, max(age) OVER same AS newest, max(age) FILTER (WHERE update_delete) OVER same AS change
    FROM visited AS v LEFT JOIN txns AS t ON t.id = v.txn_id
    WHERE t.id IS NULL OR t.commit_id < {oldest_reader}
    WINDOW same AS (PARTITION BY catalog, db, "table", partition, without)),
gone AS (
    DELETE FROM completed_txn_components WHERE ctid = ANY(ARRAY(
        SELECT place FROM settled WHERE age < newest AND (NOT update_delete OR age < change)))
    RETURNING txn_id),
{commits_remembered},
entities AS (
    SELECT row_number() OVER () AS place, ARRAY[catalog, db, "table", partition] AS name FROM visited)
SELECT (SELECT count(*) FROM gone), count(*), (SELECT name FROM entities WHERE place = 1),
       (SELECT name FROM entities WHERE place = %(limit)s)
FROM visited;

-- name: empty_aborted
WITH visited AS MATERIALIZED (
    SELECT id FROM txns WHERE {listed} AND state = 'aborted' AND id > %s ORDER BY id LIMIT %s),
emptied AS (
    UPDATE txns SET emptied = true WHERE id = ANY(ARRAY(
        SELECT id FROM txns AS t
        WHERE {listed} AND state = 'aborted' AND id = ANY(ARRAY(SELECT id FROM visited))
          AND (SELECT 1 FROM txn_components AS c WHERE c.txn_id = t.id LIMIT 1) IS NULL
        ORDER BY id FOR UPDATE SKIP LOCKED))
    RETURNING id),
gone AS (DELETE FROM txn_write_ids USING emptied WHERE txn_id = emptied.id
         RETURNING catalog, db, "table", write_id)
{remember_purged}
SELECT (SELECT count(*) FROM emptied), count(*), max(id) FROM visited;

-- name: delete_ended
WITH visited AS MATERIALIZED (
    SELECT id, state = 'committed' OR emptied AS ended, ended_at FROM txns WHERE id > %(after)s
    ORDER BY id LIMIT %(limit)s),
gone AS (
    DELETE FROM txns USING visited AS v WHERE txns.id = v.id AND v.ended AND v.ended_at < %(before)s
      AND (SELECT 1 FROM txn_write_ids AS w WHERE w.txn_id = v.id LIMIT 1) IS NULL
    RETURNING txns.*, txns.id AS txn_id),
{commits_remembered},
remembered_besides AS (
    {into_history}, '[]', 0, '[]', 0 FROM gone
    WHERE (state = 'aborted' OR {latest}) AND txn_id NOT IN (SELECT txn_id FROM wrote)
    ON CONFLICT (txn_id) DO NOTHING)
SELECT (SELECT count(*) FROM gone), max(id),
       count(*) = %(limit)s
       AND coalesce((SELECT ended_at < %(before)s FROM visited WHERE ended ORDER BY id DESC LIMIT 1), true)
FROM visited;
