-- name: empty
DO $$
DECLARE thing record;
BEGIN
    FOR thing IN SELECT c.oid::regclass AS name FROM pg_class AS c
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
               AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e') LOOP
        EXECUTE format('DROP TABLE %s CASCADE', thing.name);
    END LOOP;
    FOR thing IN SELECT c.oid::regclass AS name FROM pg_class AS c
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'S'
               AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e') LOOP
        EXECUTE format('DROP SEQUENCE %s CASCADE', thing.name);
    END LOOP;
    FOR thing IN SELECT p.oid::regprocedure AS name FROM pg_proc AS p
               WHERE p.pronamespace = current_schema()::regnamespace
               AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e') LOOP
        EXECUTE format('DROP ROUTINE %s CASCADE', thing.name);
    END LOOP;
END $$;

-- name: columns
-- Tables with the columns that rows are copied into, and sequences, which have none.
SELECT c.relname, coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE c.relkind <> 'S' AND a.attgenerated = ''), '{}')
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'S')
  AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')
GROUP BY c.oid, c.relname ORDER BY c.relname;

-- name: foreign_keys
SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = current_schema()::regnamespace AND contype = 'f' AND conparentid = 0 ORDER BY 1, 2;

-- name: triggers
SELECT tgrelid::regclass::text, quote_ident(tgname) FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid
WHERE c.relnamespace = current_schema()::regnamespace AND NOT tgisinternal AND tgenabled <> 'D' ORDER BY 1, 2;
