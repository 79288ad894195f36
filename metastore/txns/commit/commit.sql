-- Committing, as functions: every statement below keeps its plan in the session, and those that have nothing to do in
-- this commit are not even started. store.py says what calls them; core/rules.py has the rules, of which only
-- supersets stand here. A change of meaning gets a new name: servers of two releases may run side by side.

-- What a decided commit does: components move on, locks go, states change.
-- changing: those that updated or deleted; later committers are checked against it.
-- completing: those whose components compaction must learn of.
CREATE OR REPLACE FUNCTION apply_commits(
    committed bigint[], changing bigint[], completing bigint[], at_id bigint, wrote boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF wrote THEN
        WITH moved AS (
            DELETE FROM txn_components WHERE txn_id = ANY(committed) RETURNING *),
        written AS (
            INSERT INTO write_sets (txn_id, commit_id, catalog, db, "table", partition, operation, guarded)
            SELECT txn_id, at_id, catalog, db, "table", partition, operation, EXISTS (
                SELECT FROM locks AS l
                WHERE l.txn_id = moved.txn_id AND l.txn_id <> 0 AND l.state = 'acquired' AND l.type <> 'shared_read'
                  AND l.catalog = moved.catalog AND l.db = moved.db AND l."table" IN ('', moved."table")
                  AND l.partition IN ('', moved.partition))
            FROM moved WHERE operation IN ('u', 'd') AND txn_id = ANY(changing))
        INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
        SELECT m.txn_id, m.catalog, m.db, m."table", m.partition, coalesce(m.write_id, (
                   SELECT w.write_id FROM txn_write_ids AS w WHERE w.txn_id = m.txn_id AND w.catalog = m.catalog
                   AND w.db = m.db AND w."table" = m."table")) AS known,
               m.txn_id = ANY(changing) AND m.txn_id IN (SELECT txn_id FROM moved WHERE operation IN ('u', 'd')),
               metastore_now()
        FROM moved AS m WHERE m.operation <> 'c' AND m.txn_id = ANY(completing)
        GROUP BY m.txn_id, m.catalog, m.db, m."table", m.partition, known;
    END IF;
    UPDATE txns SET state = 'committed', ended_at = metastore_now(), commit_id = at_id WHERE id = ANY(committed);
    DELETE FROM locks WHERE txn_id = ANY(committed) AND txn_id <> 0;
    DELETE FROM min_history WHERE txn_id = ANY(committed);
    DELETE FROM materialization_locks WHERE txn_id = ANY(committed);
END $$;

-- Commit all of the transactions if there is nothing to decide, else none: all are open and of an ordinary type, no
-- other commit is a candidate for a conflict, nor are two of them for each other and, where that is asked for,
-- everything written to a transactional table has its write id. Whether it was done.
-- Who wrote nothing (and is of a light type) waits neither for the counter nor for the disk: one that a crash brings
-- back holds nothing, and expires. Rows are locked in the order of store.py.
CREATE OR REPLACE FUNCTION commit_uncontended(
    ids bigint[], ordinary smallint[], light smallint[], require_write_ids boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    ready bigint;
    weighty boolean;
    wrote boolean;
    at_id bigint;
BEGIN
    SELECT count(*) FILTER (WHERE type = ANY(ordinary)), bool_or(type <> ALL(light)) INTO ready, weighty
    FROM (SELECT type FROM txns WHERE id = ANY(ids) AND state = 'open' ORDER BY id FOR UPDATE) AS mine;
    IF ready < cardinality(ids) THEN
        RETURN false;
    END IF;
    wrote := EXISTS (SELECT FROM txn_components WHERE txn_id = ANY(ids));
    IF wrote OR weighty OR EXISTS (SELECT FROM txn_write_ids WHERE txn_id = ANY(ids)) THEN
        SELECT next_txn_id - 1 INTO at_id FROM txn_counter FOR UPDATE;
    ELSE
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF wrote AND (
        EXISTS (
            SELECT FROM txn_components AS c JOIN write_sets AS w USING (catalog, db, "table", partition)
            WHERE c.txn_id = ANY(ids) AND c.operation IN ('u', 'd') AND w.commit_id >= c.txn_id)
        OR EXISTS (
            SELECT FROM txn_components WHERE txn_id = ANY(ids) AND operation IN ('u', 'd')
            GROUP BY catalog, db, "table", partition HAVING min(txn_id) < max(txn_id))
        OR require_write_ids AND EXISTS (
            SELECT FROM txn_components AS c
            WHERE txn_id = ANY(ids) AND write_id IS NULL AND (
                SELECT 1 FROM txn_write_ids AS w WHERE w.txn_id = c.txn_id AND w.catalog = c.catalog AND w.db = c.db
                AND w."table" = c."table") IS NULL AND (
                SELECT is_transactional(t.parameters) FROM tables AS t
                WHERE t.catalog = c.catalog AND t.db = c.db AND t.name = c."table")))
    THEN
        RETURN false;
    END IF;
    PERFORM apply_commits(ids, ids, ids, at_id, wrote);
    RETURN true;
END $$;
