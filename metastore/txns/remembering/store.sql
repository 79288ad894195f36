-- name: wrote
-- What the committed transactions of the table "wanted" wrote. Write ids without components stand beside that: nothing
-- was written with them, but for a rebalance, whose components do not outlast it. Which operation it was is known only
-- as long as the write sets are kept; then what is left is that something of it was changed.
SELECT txn_id, catalog, db, "table", partition, write_id, operation, row_number() OVER (PARTITION BY txn_id) AS place
FROM (SELECT c.txn_id, c.catalog, c.db, c."table", c.partition, c.write_id,
             CASE WHEN NOT c.update_delete THEN 'i' WHEN s.operation IS NOT NULL THEN s.operation
                  WHEN bool_or(s.operation IS NOT NULL) OVER mine THEN 'i' ELSE 'w' END AS operation
      FROM wanted JOIN txns AS t ON t.id = wanted.txn_id JOIN completed_txn_components AS c ON c.txn_id = wanted.txn_id
      LEFT JOIN write_sets AS s ON s.catalog = c.catalog AND s.db = c.db AND s."table" = c."table"
           AND s.partition = c.partition AND s.commit_id = t.commit_id AND s.txn_id = t.id
      WINDOW mine AS (PARTITION BY c.txn_id)
      UNION ALL
      SELECT w.txn_id, w.catalog, w.db, w."table", '', w.write_id, CASE WHEN t.type = {rebalance} THEN 'w' ELSE 'r' END
      FROM wanted JOIN txns AS t ON t.id = wanted.txn_id JOIN txn_write_ids AS w ON w.txn_id = wanted.txn_id
      WHERE t.state = 'committed' AND NOT EXISTS (
          SELECT FROM completed_txn_components AS c
          WHERE c.txn_id = w.txn_id AND c.catalog = w.catalog AND c.db = w.db AND c."table" = w."table")) AS every;

-- name: commits_remembered
-- In one order, since two statements may remember the same.
wanted AS MATERIALIZED (
    SELECT DISTINCT txn_id FROM gone WHERE NOT EXISTS (SELECT FROM txn_history AS h WHERE h.txn_id = gone.txn_id)),
wrote AS (
    SELECT txn_id, jsonb_agg({write}) FILTER (WHERE place <= {longest}) AS list, count(*) AS size
    FROM ({wrote}) AS found GROUP BY txn_id),
commits_remembered AS (
    {into_history}, list, size, '[]', 0 FROM wrote JOIN txns ON id = txn_id
    ORDER BY txn_id ON CONFLICT (txn_id) DO NOTHING);

-- name: rename
-- What another table had under the new name loses its write ids: those of a name belong to the table that has it.
UPDATE txn_history SET
    writes = (
        SELECT jsonb_agg(CASE (w ->> 0, w ->> 1, w ->> 2)
                         WHEN ({old}) THEN jsonb_build_array({new}, w -> 3, w -> 4, w -> 5)
                         WHEN ({new}) THEN jsonb_build_array({new}, w -> 3, w -> 4, NULL)
                         ELSE w END ORDER BY place)
        FROM jsonb_array_elements(writes) WITH ORDINALITY AS one(w, place)),
    written_rows = (
        SELECT jsonb_agg(CASE (w ->> 0, w ->> 1, w ->> 2)
                         WHEN ({old}) THEN jsonb_build_array({new}, w -> 3, w -> 4)
                         ELSE w END ORDER BY place)
        FROM jsonb_array_elements(written_rows) WITH ORDINALITY AS one(w, place))
WHERE writes @> jsonb_build_array(jsonb_build_array({old}))
   OR writes @> jsonb_build_array(jsonb_build_array({new}));

-- name: declared
-- What an unfinished or aborted transaction declared, with the write id that it got later; write ids beside that.
SELECT c.catalog, c.db, c."table", c.partition, c.operation, coalesce(c.write_id, w.write_id) AS write_id
FROM txn_components AS c LEFT JOIN txn_write_ids AS w USING (txn_id, catalog, db, "table")
WHERE c.txn_id = {txn_id} AND (c.operation <> 'c' OR c.partition <> '' OR NOT EXISTS (
    SELECT FROM txn_components AS n WHERE n.txn_id = c.txn_id AND n.catalog = c.catalog AND n.db = c.db
    AND n."table" = c."table" AND n.operation <> 'c'))
UNION ALL
SELECT w.catalog, w.db, w."table", '', 'r', w.write_id FROM txn_write_ids AS w
WHERE w.txn_id = {txn_id} AND NOT EXISTS (
    SELECT FROM txn_components AS c WHERE c.txn_id = w.txn_id AND c.catalog = w.catalog AND c.db = w.db
    AND c."table" = w."table");
