-- name: piece
SELECT int4send(count(*)::int), coalesce(string_agg(entry, ''), '') FROM (
    SELECT {asked} || '\x0c'::bytea || int4send(size) || encoded AS entry
    FROM (
        SELECT s.partition, count(*)::int AS size,
               string_agg(coalesce(s.wire, column_statistics_wire(s."column", s.type, s.data)), '' ORDER BY s."column")
               AS encoded
        FROM column_statistics AS s
        WHERE s.table_id = ({table_id}) AND s.partition = ANY(%(partitions)s::text[])
          AND s."column" = ANY(%(columns)s::text[]) AND s.engine = %(engine)s
        GROUP BY s.partition) AS described
    JOIN unnest(%(partitions)s::text[], %(asked)s::text[]) AS a (partition, asked) USING (partition)) AS listed;

-- name: count
SELECT count(*) FROM unnest(%(partitions)s::text[]) AS a (partition) WHERE EXISTS (
    SELECT FROM column_statistics AS s
    WHERE s.table_id = ({table_id}) AND s.partition = a.partition
      AND s."column" = ANY(%(columns)s::text[]) AND s.engine = %(engine)s);
