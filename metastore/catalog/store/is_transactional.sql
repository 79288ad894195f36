-- What metastore/acid/table_kinds.py says of a table's properties, for statements that choose tables. PostgreSQL puts the
-- expression in place of the call.
CREATE OR REPLACE FUNCTION is_transactional(parameters jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN coalesce(lower(parameters ->> 'transactional') = 'true', false);
