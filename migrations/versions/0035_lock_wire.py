"""What of a lock never changes, as it goes to clients, beside the columns that it is made of."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

_WIRE = r"""
-- What of a lock never changes, as the fields of ShowLocksResponseElement that clients get: kept beside it. A field is
-- its type (0b text, 08 i32, 0a i64), its id and its value. One expression, so that statements take it in. textsend
-- costs a tenth of convert_to, and is right in sessions that speak UTF-8, as all of ours do.
CREATE OR REPLACE FUNCTION lock_wire(
    ext_id bigint, int_id int, txn_id bigint, db text, tab text, part text, lock_type text, owner text, host text,
    agent text)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT '\x0a0001'::bytea || int8send(ext_id) || '\x0b0002'::bytea || int4send(octet_length(db)) || textsend(db)
        || CASE WHEN tab = '' THEN ''::bytea
                ELSE '\x0b0003'::bytea || int4send(octet_length(tab)) || textsend(tab) END
        || CASE WHEN part = '' THEN ''::bytea
                ELSE '\x0b0004'::bytea || int4send(octet_length(part)) || textsend(part) END
        || CASE lock_type WHEN 'shared_read' THEN '\x080006000000010a0007'::bytea
                          WHEN 'shared_write' THEN '\x080006000000020a0007'::bytea
                          WHEN 'exclusive' THEN '\x080006000000030a0007'::bytea
                          WHEN 'excl_write' THEN '\x080006000000040a0007'::bytea END
        || int8send(txn_id) || '\x0b000a'::bytea || int4send(octet_length(owner)) || textsend(owner)
        || '\x0b000b'::bytea || int4send(octet_length(host)) || textsend(host)
        || '\x0b000d'::bytea || int4send(octet_length(agent)) || textsend(agent)
        || '\x0a0010'::bytea || int8send(int_id)
$$;
"""
_BEFORE = """
CREATE OR REPLACE FUNCTION lock_uncontended(
    of_txns bigint[], tails int[], requests int,
    places int[], int_ids int[], txn_ids bigint[], catalogs text[], dbs text[], tabs text[], parts text[],
    lock_types text[], waits_for text[], users text[], hosts text[], agents text[],
    c_txns bigint[], c_catalogs text[], c_dbs text[], c_tabs text[], c_parts text[], c_operations text[])
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    open_txns bigint := 0;
    ext_ids bigint[];
BEGIN
    IF cardinality(of_txns) > 0 THEN
        SELECT count(*) INTO open_txns FROM (
            SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' ORDER BY id FOR KEY SHARE) AS mine;
    END IF;
    IF open_txns = cardinality(of_txns) THEN
        PERFORM pg_advisory_xact_lock(4293, tail) FROM unnest(tails) AS tail;
    END IF;
    IF open_txns < cardinality(of_txns) OR EXISTS (
        SELECT FROM unnest(txn_ids, catalogs, dbs, tabs, waits_for) AS w (txn_id, catalog, db, tab, waits_for)
        CROSS JOIN LATERAL (
            SELECT FROM locks AS l
            WHERE l.catalog = w.catalog AND l.db = w.db AND l."table" = ANY(ARRAY['', w.tab])
              AND l.type = ANY(string_to_array(w.waits_for, ',')) AND (w.txn_id = 0 OR l.txn_id <> w.txn_id)
            LIMIT 1) AS ahead)
    THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN NULL;
    END IF;
    ext_ids := ARRAY(SELECT nextval('lock_ext_id') FROM generate_series(1, requests));
    INSERT INTO locks (ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host, agent_info,
                       requested_at, acquired_at, last_heartbeat_at)
    SELECT ext_ids[place], int_id, txn_id, catalog, db, tab, part, type, 'acquired', "user", host, agent,
           metastore_now(), metastore_now(), CASE WHEN txn_id = 0 THEN metastore_now() END
    FROM unnest(places, int_ids, txn_ids, catalogs, dbs, tabs, parts, lock_types, users, hosts, agents)
         AS l (place, int_id, txn_id, catalog, db, tab, part, type, "user", host, agent);
    IF cardinality(c_txns) > 0 THEN
        INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
        SELECT DISTINCT c.txn_id, c.catalog, c.db, c.tab, c.part, c.operation, (
            SELECT w.write_id FROM txn_write_ids AS w WHERE w.txn_id = c.txn_id AND w.catalog = c.catalog
            AND w.db = c.db AND w."table" = c.tab)
        FROM unnest(c_txns, c_catalogs, c_dbs, c_tabs, c_parts, c_operations)
             AS c (txn_id, catalog, db, tab, part, operation)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN ext_ids;
END $$;
"""
_AFTER = """
CREATE OR REPLACE FUNCTION lock_uncontended(
    of_txns bigint[], tails int[], requests int,
    places int[], int_ids int[], txn_ids bigint[], catalogs text[], dbs text[], tabs text[], parts text[],
    lock_types text[], waits_for text[], users text[], hosts text[], agents text[],
    c_txns bigint[], c_catalogs text[], c_dbs text[], c_tabs text[], c_parts text[], c_operations text[])
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    open_txns bigint := 0;
    ext_ids bigint[];
BEGIN
    IF cardinality(of_txns) > 0 THEN
        SELECT count(*) INTO open_txns FROM (
            SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' ORDER BY id FOR KEY SHARE) AS mine;
    END IF;
    IF open_txns = cardinality(of_txns) THEN
        PERFORM pg_advisory_xact_lock(4293, tail) FROM unnest(tails) AS tail;
    END IF;
    IF open_txns < cardinality(of_txns) OR EXISTS (
        SELECT FROM unnest(txn_ids, catalogs, dbs, tabs, waits_for) AS w (txn_id, catalog, db, tab, waits_for)
        CROSS JOIN LATERAL (
            SELECT FROM locks AS l
            WHERE l.catalog = w.catalog AND l.db = w.db AND l."table" = ANY(ARRAY['', w.tab])
              AND l.type = ANY(string_to_array(w.waits_for, ',')) AND (w.txn_id = 0 OR l.txn_id <> w.txn_id)
            LIMIT 1) AS ahead)
    THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN NULL;
    END IF;
    ext_ids := ARRAY(SELECT nextval('lock_ext_id') FROM generate_series(1, requests));
    INSERT INTO locks (ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host, agent_info,
                       requested_at, acquired_at, last_heartbeat_at, wire)
    SELECT ext_ids[place], int_id, txn_id, catalog, db, tab, part, type, 'acquired', "user", host, agent,
           metastore_now(), metastore_now(), CASE WHEN txn_id = 0 THEN metastore_now() END,
           lock_wire(ext_ids[place], int_id, txn_id, db, tab, part, type, "user", host, agent)
    FROM unnest(places, int_ids, txn_ids, catalogs, dbs, tabs, parts, lock_types, users, hosts, agents)
         AS l (place, int_id, txn_id, catalog, db, tab, part, type, "user", host, agent);
    IF cardinality(c_txns) > 0 THEN
        INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
        SELECT DISTINCT c.txn_id, c.catalog, c.db, c.tab, c.part, c.operation, (
            SELECT w.write_id FROM txn_write_ids AS w WHERE w.txn_id = c.txn_id AND w.catalog = c.catalog
            AND w.db = c.db AND w."table" = c.tab)
        FROM unnest(c_txns, c_catalogs, c_dbs, c_tabs, c_parts, c_operations)
             AS c (txn_id, catalog, db, tab, part, operation)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN ext_ids;
END $$;
"""

_FORGET = """
-- A lock follows its table into another name, also by a server of the release before: its bytes are then those of the
-- old name. A list encodes those of a row that has none.
CREATE OR REPLACE FUNCTION forget_lock_wire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.wire := NULL; RETURN NEW; END $$;
CREATE TRIGGER locks_wire BEFORE UPDATE OF catalog, db, "table", partition ON locks
    FOR EACH ROW EXECUTE FUNCTION forget_lock_wire();
"""


def upgrade() -> None:
    """Locks that are there stay without it, and so do those that servers of the release before queue."""
    op.execute("ALTER TABLE locks ADD wire bytea")
    op.execute(_FORGET)
    op.get_bind().exec_driver_sql(_WIRE)
    op.get_bind().exec_driver_sql(_AFTER)


def downgrade() -> None:
    """Nothing but a copy is lost."""
    op.get_bind().exec_driver_sql(_BEFORE)
    op.execute("DROP TRIGGER locks_wire ON locks; DROP FUNCTION forget_lock_wire")
    op.execute("DROP FUNCTION lock_wire; ALTER TABLE locks DROP wire")
