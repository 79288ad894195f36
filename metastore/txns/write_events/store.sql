-- name: upsert
INSERT INTO write_events AS known
    (txn_id, catalog, db, "table", partition, write_id, files, table_object, partition_object, at)
SELECT txn_id, catalog, db, tab, partition, write_id, ARRAY(SELECT jsonb_array_elements_text(files)),
       table_object, partition_object, metastore_now()
FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::jsonb[], %s::text[],
            %s::text[]) AS sent(txn_id, catalog, db, tab, partition, write_id, files, table_object,
                                partition_object)
ON CONFLICT (txn_id, catalog, db, "table", partition) DO UPDATE SET
    files = known.files || ARRAY(SELECT one FROM unnest(excluded.files) WITH ORDINALITY AS f(one, place)
                                 WHERE one <> ALL(known.files) ORDER BY place),
    table_object = excluded.table_object, partition_object = excluded.partition_object,
    at = excluded.at;
