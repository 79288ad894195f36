-- The service's clock: what rows say of time comes from here, so that tests can move it.

CREATE OR REPLACE FUNCTION metastore_now() RETURNS timestamp with time zone
LANGUAGE sql STABLE PARALLEL SAFE AS $$SELECT now() $$;
