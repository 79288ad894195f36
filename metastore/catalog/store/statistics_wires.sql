-- name: piece
SELECT int4send(count(*)::int), coalesce(string_agg(entry, ''), '') FROM (
    SELECT {asked} || '\x0c'::bytea || int4send(size) || encoded AS entry
    FROM (
        SELECT s.partition, count(*)::int AS size,
               string_agg(coalesce(s.wire, column_statistics_wire(s."column", s.type, s.data)), '' ORDER BY s."column")
               AS encoded
        FROM column_statistics AS s
        WHERE s.table_id = ({table_id}) AND s.partition = ANY(%(partitions)s::text[])
          AND {wanted}
        GROUP BY s.partition) AS described
    JOIN unnest(%(partitions)s::text[], %(asked)s::text[]) AS a (partition, asked) USING (partition)) AS listed;

-- name: count
SELECT count(*) FROM unnest(%(partitions)s::text[]) AS a (partition) WHERE EXISTS (
    SELECT FROM column_statistics AS s
    WHERE s.table_id = ({table_id}) AND s.partition = a.partition AND {wanted});

-- name: origins
SELECT is_transactional(t.parameters), s.write_id, s.is_whole, count(s.partition)
FROM tables AS t LEFT JOIN column_statistics AS s
    ON s.table_id = t.id AND s.partition = ANY(%(partitions)s::text[]) AND {wanted}
WHERE t.catalog = %(catalog)s AND t.db = %(db)s AND t.name = %(table)s
GROUP BY 1, 2, 3;
