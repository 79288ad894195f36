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
