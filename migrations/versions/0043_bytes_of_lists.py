"""The encoding of locks and of table lists' lines: they are encoded when they are read, and no longer stored (ADR 59).

Release 0.2 encodes rows that it finds without bytes. Compactions keep their bytes, since release 0.2 reads nothing else
of them.
"""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

_LOCK_UNCONTENDED = """
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
                       requested_at, acquired_at, last_heartbeat_at{column})
    SELECT ext_ids[place], int_id, txn_id, catalog, db, tab, part, type, 'acquired', "user", host, agent,
           metastore_now(), metastore_now(), CASE WHEN txn_id = 0 THEN metastore_now() END{value}
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
_KEPT = {
    "column": ", wire",
    "value": """,
           lock_wire(ext_ids[place], int_id, txn_id, db, tab, part, type, "user", host, agent)""",
}
_FORGET = "UPDATE tables SET meta = NULL WHERE meta IS NOT NULL"
_KEEP_LINES = """
CREATE OR REPLACE FUNCTION set_table_meta() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.meta := table_meta(NEW.catalog, NEW.db, NEW.name, NEW.type, NEW.parameters ->> 'comment');
    RETURN NEW;
END $$;
CREATE TRIGGER tables_meta BEFORE INSERT ON tables FOR EACH ROW EXECUTE FUNCTION set_table_meta();
CREATE TRIGGER tables_meta_again BEFORE UPDATE OF catalog, db, name, type, parameters ON tables FOR EACH ROW
    WHEN (OLD.meta IS NULL OR OLD.catalog <> NEW.catalog OR OLD.db <> NEW.db OR OLD.name <> NEW.name
          OR OLD.type <> NEW.type OR OLD.parameters ->> 'comment' IS DISTINCT FROM NEW.parameters ->> 'comment')
    EXECUTE FUNCTION set_table_meta();
"""


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.execute(_LOCK_UNCONTENDED.format(column="", value=""))
    op.execute(_FORGET)  # most rows, while other transactions go on
    op.execute(
        "DROP TRIGGER tables_meta ON tables; DROP TRIGGER tables_meta_again ON tables; DROP FUNCTION set_table_meta()"
    )
    op.execute(_FORGET)  # rows that came meanwhile


def downgrade() -> None:
    """Bring the schema back to the revision before."""
    op.execute(_KEEP_LINES)
    op.execute(_LOCK_UNCONTENDED.format(**_KEPT))
