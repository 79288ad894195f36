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
