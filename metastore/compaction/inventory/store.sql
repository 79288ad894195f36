-- name: upsert
INSERT INTO listings AS known (catalog, db, "table", partition, location, listed_at, high_watermark, base_bytes, delta_bytes,
                               deltas, delete_deltas, originals, raw_deltas, leftover_base)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::bigint[], %s::bigint[],
                     %s::bigint[], %s::int[], %s::int[], %s::boolean[], %s::boolean[], %s::boolean[])
ORDER BY 1, 2, 3, 4
ON CONFLICT (catalog, db, "table", partition) DO UPDATE
SET location = excluded.location, listed_at = excluded.listed_at, high_watermark = excluded.high_watermark,
    base_bytes = excluded.base_bytes, delta_bytes = excluded.delta_bytes, deltas = excluded.deltas,
    delete_deltas = excluded.delete_deltas, originals = excluded.originals, raw_deltas = excluded.raw_deltas,
    leftover_base = excluded.leftover_base
WHERE known.listed_at <= excluded.listed_at;

-- name: select_kept
-- A write without an id may be anywhere: it counts as the highest. A compaction may have failed after its commit.
SELECT catalog, db, "table", partition, l.location, l.listed_at, l.high_watermark, l.base_bytes, l.delta_bytes, l.deltas,
       l.delete_deltas, l.originals, l.raw_deltas, l.leftover_base,
       coalesce((SELECT max(coalesce(c.write_id, {largest})) FROM completed_txn_components AS c
                 WHERE (c.catalog, c.db, c."table", c.partition) = (l.catalog, l.db, l."table", l.partition)), 0),
       greatest((SELECT max(q.committed_at) FROM compaction_queue AS q
                 WHERE (q.catalog, q.db, q."table", q.partition) = (l.catalog, l.db, l."table", l.partition)),
                (SELECT max(greatest(h.committed_at, CASE WHEN h.state = 'succeeded' THEN h.ended_at END))
                 FROM completed_compactions AS h
                 WHERE (h.catalog, h.db, h."table", h.partition) = (l.catalog, l.db, l."table", l.partition)))
FROM {wanted} JOIN listings AS l USING (catalog, db, "table", partition);
