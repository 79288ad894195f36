INSERT INTO txns (state, started, heartbeat, owner, host, agent) VALUES ('open', now(), now(), 'ann', 'node1', 'bench') RETURNING id \gset
UPDATE txns SET state = 'committed' WHERE id = :id AND state = 'open';
