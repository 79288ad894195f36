INSERT INTO locks (txn_id, db, tbl, state, type, heartbeat, owner, host) VALUES (0, 'bench', 't' || :client_id, 'acquired', 'exclusive', now(), 'ann', 'node1') RETURNING id \gset
DELETE FROM locks WHERE id = :id;
