-- name: add_changes
UPDATE tables AS view SET creation_metadata = jsonb_set(view.creation_metadata, ARRAY['sourceTables'], (
    SELECT jsonb_agg(CASE WHEN source @> fed.name THEN source || jsonb_build_object(
               'insertedCount', coalesce((source ->> 'insertedCount')::bigint, 0) + %(inserted)s,
               'updatedCount', coalesce((source ->> 'updatedCount')::bigint, 0) + %(updated)s,
               'deletedCount', coalesce((source ->> 'deletedCount')::bigint, 0) + %(deleted)s)
           ELSE source END ORDER BY place)
    FROM jsonb_array_elements(view.creation_metadata -> 'sourceTables') WITH ORDINALITY AS s(source, place)))
FROM (SELECT jsonb_build_object('table', jsonb_build_object('dbName', db, 'tableName', name)) AS name
      FROM tables WHERE id = %(id)s) AS fed
WHERE view.type = 'MATERIALIZED_VIEW'
  AND view.creation_metadata -> 'sourceTables' @> jsonb_build_array(fed.name);
