-- name: select_users
SELECT pg_advisory_xact_lock({creators});
SELECT s.source, min(used.who)
FROM unnest(%(sources)s::text[]) AS s (source), LATERAL ({users}) AS used (who)
GROUP BY 1;
