-- What a database has before anything happens.

INSERT INTO txn_counter (id) VALUES (1);
INSERT INTO oldest_release (id, version) VALUES (1, '0024');
SELECT make_hive_views();
