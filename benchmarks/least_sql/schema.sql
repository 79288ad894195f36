-- The least that transactions and locks can be kept in: for comparison only.
CREATE SEQUENCE ids;
CREATE TABLE txns (id bigint PRIMARY KEY DEFAULT nextval('ids'), state text NOT NULL, started timestamptz NOT NULL,
    heartbeat timestamptz NOT NULL, owner text NOT NULL, host text NOT NULL, agent text NOT NULL)
    WITH (fillfactor = 70);
CREATE INDEX txns_open ON txns (id) WHERE state = 'open';
CREATE TABLE locks (id bigint PRIMARY KEY DEFAULT nextval('ids'), txn_id bigint NOT NULL, db text NOT NULL, tbl text NOT NULL,
    state text NOT NULL, type text NOT NULL, heartbeat timestamptz NOT NULL, owner text NOT NULL, host text NOT NULL);
CREATE INDEX locks_txn ON locks (txn_id);
CREATE TABLE components (txn_id bigint NOT NULL, db text NOT NULL, tbl text NOT NULL, operation text NOT NULL,
    PRIMARY KEY (txn_id, db, tbl));
CREATE TABLE completed (txn_id bigint NOT NULL, db text NOT NULL, tbl text NOT NULL, at timestamptz NOT NULL);
