"""The first rows of tables' write ids are made before any table is locked: two callers that met there blocked each other."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

UP = """
CREATE OR REPLACE FUNCTION allocate_uncontended(
    of_txns bigint[], read_only smallint, t_catalogs text[], t_dbs text[], t_tabs text[],
    txn_ids bigint[], catalogs text[], dbs text[], tabs text[])
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    ready bigint;
    ids bigint[];
BEGIN
    SELECT count(*) INTO ready FROM (
        SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' AND type <> read_only ORDER BY id FOR KEY SHARE
        ) AS mine;
    IF ready = cardinality(of_txns) THEN
        LOOP  -- again only if a table was dropped in between
            INSERT INTO next_write_ids (catalog, db, "table", next_write_id, known_since)
            SELECT catalog, db, "table", 1, metastore_now()
            FROM unnest(t_catalogs, t_dbs, t_tabs) WITH ORDINALITY AS w (catalog, db, "table", place)
            WHERE NOT EXISTS (SELECT FROM next_write_ids AS n
                              WHERE n.catalog = w.catalog AND n.db = w.db AND n."table" = w."table")
            ORDER BY place ON CONFLICT DO NOTHING;
            SELECT count(*) INTO ready FROM (
                SELECT FROM next_write_ids
                WHERE (catalog, db, "table") IN (SELECT * FROM unnest(t_catalogs, t_dbs, t_tabs))
                ORDER BY catalog, db, "table" FOR UPDATE) AS theirs;
            EXIT WHEN ready = cardinality(t_tabs);
        END LOOP;
        IF NOT EXISTS (
            SELECT FROM unnest(txn_ids, catalogs, dbs, tabs) AS w (txn_id, catalog, db, "table")
            JOIN txn_write_ids USING (txn_id, catalog, db, "table"))
        THEN
            ids := ARRAY(
                SELECT n.next_write_id - 1 + row_number() OVER (PARTITION BY w.catalog, w.db, w."table" ORDER BY place)
                FROM unnest(catalogs, dbs, tabs) WITH ORDINALITY AS w (catalog, db, "table", place)
                JOIN next_write_ids AS n USING (catalog, db, "table") ORDER BY place);
            INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
            SELECT * FROM unnest(txn_ids, catalogs, dbs, tabs, ids);
            UPDATE next_write_ids AS n SET next_write_id = n.next_write_id + w.given
            FROM (SELECT catalog, db, tab, count(*) AS given FROM unnest(catalogs, dbs, tabs) AS u (catalog, db, tab)
                  GROUP BY 1, 2, 3) AS w
            WHERE n.catalog = w.catalog AND n.db = w.db AND n."table" = w.tab;
            RETURN ids;
        END IF;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN NULL;
END $$;
"""

DOWN = """
CREATE OR REPLACE FUNCTION allocate_uncontended(
    of_txns bigint[], read_only smallint, t_catalogs text[], t_dbs text[], t_tabs text[],
    txn_ids bigint[], catalogs text[], dbs text[], tabs text[])
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    ready bigint;
    ids bigint[];
BEGIN
    SELECT count(*) INTO ready FROM (
        SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' AND type <> read_only ORDER BY id FOR KEY SHARE
        ) AS mine;
    IF ready = cardinality(of_txns) THEN
        LOOP
            SELECT count(*) INTO ready FROM (
                SELECT FROM next_write_ids
                WHERE (catalog, db, "table") IN (SELECT * FROM unnest(t_catalogs, t_dbs, t_tabs))
                ORDER BY catalog, db, "table" FOR UPDATE) AS theirs;
            EXIT WHEN ready = cardinality(t_tabs);
            INSERT INTO next_write_ids (catalog, db, "table", next_write_id, known_since)
            SELECT *, 1, metastore_now() FROM unnest(t_catalogs, t_dbs, t_tabs) ON CONFLICT DO NOTHING;
        END LOOP;
        IF NOT EXISTS (
            SELECT FROM unnest(txn_ids, catalogs, dbs, tabs) AS w (txn_id, catalog, db, "table")
            JOIN txn_write_ids USING (txn_id, catalog, db, "table"))
        THEN
            ids := ARRAY(
                SELECT n.next_write_id - 1 + row_number() OVER (PARTITION BY w.catalog, w.db, w."table" ORDER BY place)
                FROM unnest(catalogs, dbs, tabs) WITH ORDINALITY AS w (catalog, db, "table", place)
                JOIN next_write_ids AS n USING (catalog, db, "table") ORDER BY place);
            INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
            SELECT * FROM unnest(txn_ids, catalogs, dbs, tabs, ids);
            UPDATE next_write_ids AS n SET next_write_id = n.next_write_id + w.given
            FROM (SELECT catalog, db, tab, count(*) AS given FROM unnest(catalogs, dbs, tabs) AS u (catalog, db, tab)
                  GROUP BY 1, 2, 3) AS w
            WHERE n.catalog = w.catalog AND n.db = w.db AND n."table" = w.tab;
            RETURN ids;
        END IF;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN NULL;
END $$;
"""


def upgrade() -> None:
    """Make the function anew."""
    op.get_bind().exec_driver_sql(UP)


def downgrade() -> None:
    """Make it as it was."""
    op.get_bind().exec_driver_sql(DOWN)
