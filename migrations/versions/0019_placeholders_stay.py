"""A transaction that names its partitions one call after the other keeps a component of the table until it ends."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

UP = """
CREATE OR REPLACE FUNCTION name_partitions(
    of_txns bigint[], w_txns bigint[], w_catalogs text[], w_dbs text[], w_tabs text[],
    c_txns bigint[], c_catalogs text[], c_dbs text[], c_tabs text[], c_parts text[], c_operations text[],
    c_write_ids bigint[])
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    open_txns bigint;
BEGIN
    SELECT count(*) INTO open_txns FROM (
        SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' ORDER BY id FOR KEY SHARE) AS mine;
    IF open_txns < cardinality(of_txns) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN false;
    END IF;
    INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
    SELECT * FROM unnest(c_txns, c_catalogs, c_dbs, c_tabs, c_parts, c_operations, c_write_ids)
    ON CONFLICT DO NOTHING;
    WITH replaced AS (
        DELETE FROM txn_components AS c
        USING unnest(w_txns, w_catalogs, w_dbs, w_tabs) AS w (txn_id, catalog, db, "table")
        WHERE c.txn_id = w.txn_id AND c.catalog = w.catalog AND c.db = w.db AND c."table" = w."table"
          AND c.partition = '' AND c.operation <> 'c'
        RETURNING c.*)
    INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
    SELECT txn_id, catalog, db, "table", '', 'c', max(write_id) FROM replaced GROUP BY txn_id, catalog, db, "table"
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;
"""

DOWN = """
CREATE OR REPLACE FUNCTION name_partitions(
    of_txns bigint[], w_txns bigint[], w_catalogs text[], w_dbs text[], w_tabs text[],
    c_txns bigint[], c_catalogs text[], c_dbs text[], c_tabs text[], c_parts text[], c_operations text[],
    c_write_ids bigint[])
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    open_txns bigint;
BEGIN
    SELECT count(*) INTO open_txns FROM (
        SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' ORDER BY id FOR KEY SHARE) AS mine;
    IF open_txns < cardinality(of_txns) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN false;
    END IF;
    INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
    SELECT * FROM unnest(c_txns, c_catalogs, c_dbs, c_tabs, c_parts, c_operations, c_write_ids)
    ON CONFLICT DO NOTHING;
    DELETE FROM txn_components AS c
    USING unnest(w_txns, w_catalogs, w_dbs, w_tabs) AS w (txn_id, catalog, db, "table")
    WHERE c.txn_id = w.txn_id AND c.catalog = w.catalog AND c.db = w.db AND c."table" = w."table" AND c.partition = ''
      AND c.operation <> 'c';
    RETURN true;
END $$;
"""


def upgrade() -> None:
    """Servers of the release before call it too, and know components of operation c: commits leave them out."""
    op.get_bind().exec_driver_sql(UP)


def downgrade() -> None:
    """As before."""
    op.get_bind().exec_driver_sql(DOWN)
