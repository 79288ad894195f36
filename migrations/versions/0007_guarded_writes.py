"""Committed writes say whether a lock kept exclusive writers out until they were there."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

COMMIT = """
-- What a decided commit does: components move on, locks go, states change.
-- changing: those that updated or deleted; later committers are checked against it.
-- completing: those whose components compaction must learn of.
CREATE OR REPLACE FUNCTION apply_commits(
    committed bigint[], changing bigint[], completing bigint[], at_id bigint, wrote boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF wrote THEN
        WITH moved AS (
            DELETE FROM txn_components WHERE txn_id = ANY(committed) RETURNING *),
        written AS (
            INSERT INTO write_sets (txn_id, commit_id, catalog, db, "table", partition, operation, guarded)
            SELECT txn_id, at_id, catalog, db, "table", partition, operation, EXISTS (
                SELECT FROM locks AS l
                WHERE l.txn_id = moved.txn_id AND l.txn_id <> 0 AND l.state = 'acquired' AND l.type <> 'shared_read'
                  AND l.catalog = moved.catalog AND l.db = moved.db AND l."table" IN ('', moved."table")
                  AND l.partition IN ('', moved.partition))
            FROM moved WHERE operation IN ('u', 'd') AND txn_id = ANY(changing))
        INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
        SELECT m.txn_id, m.catalog, m.db, m."table", m.partition, coalesce(m.write_id, (
                   SELECT w.write_id FROM txn_write_ids AS w WHERE w.txn_id = m.txn_id AND w.catalog = m.catalog
                   AND w.db = m.db AND w."table" = m."table")) AS known,
               m.txn_id = ANY(changing) AND m.txn_id IN (SELECT txn_id FROM moved WHERE operation IN ('u', 'd')),
               metastore_now()
        FROM moved AS m WHERE m.operation <> 'c' AND m.txn_id = ANY(completing)
        GROUP BY m.txn_id, m.catalog, m.db, m."table", m.partition, known;
    END IF;
    UPDATE txns SET state = 'committed', ended_at = metastore_now(), commit_id = at_id WHERE id = ANY(committed);
    DELETE FROM locks WHERE txn_id = ANY(committed) AND txn_id <> 0;
    DELETE FROM min_history WHERE txn_id = ANY(committed);
    DELETE FROM materialization_locks WHERE txn_id = ANY(committed);
END $$;
"""

# As in revision 0006.
COMMIT_BEFORE = """
-- What a decided commit does: components move on, locks go, states change.
-- changing: those that updated or deleted; later committers are checked against it.
-- completing: those whose components compaction must learn of.
CREATE OR REPLACE FUNCTION apply_commits(
    committed bigint[], changing bigint[], completing bigint[], at_id bigint, wrote boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF wrote THEN
        WITH moved AS (
            DELETE FROM txn_components WHERE txn_id = ANY(committed) RETURNING *),
        written AS (
            INSERT INTO write_sets (txn_id, commit_id, catalog, db, "table", partition, operation)
            SELECT txn_id, at_id, catalog, db, "table", partition, operation
            FROM moved WHERE operation IN ('u', 'd') AND txn_id = ANY(changing))
        INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
        SELECT m.txn_id, m.catalog, m.db, m."table", m.partition, coalesce(m.write_id, (
                   SELECT w.write_id FROM txn_write_ids AS w WHERE w.txn_id = m.txn_id AND w.catalog = m.catalog
                   AND w.db = m.db AND w."table" = m."table")) AS known,
               m.txn_id = ANY(changing) AND m.txn_id IN (SELECT txn_id FROM moved WHERE operation IN ('u', 'd')),
               metastore_now()
        FROM moved AS m WHERE m.operation <> 'c' AND m.txn_id = ANY(completing)
        GROUP BY m.txn_id, m.catalog, m.db, m."table", m.partition, known;
    END IF;
    UPDATE txns SET state = 'committed', ended_at = metastore_now(), commit_id = at_id WHERE id = ANY(committed);
    DELETE FROM locks WHERE txn_id = ANY(committed) AND txn_id <> 0;
    DELETE FROM min_history WHERE txn_id = ANY(committed);
    DELETE FROM materialization_locks WHERE txn_id = ANY(committed);
END $$;
"""


def upgrade() -> None:
    op.execute("ALTER TABLE write_sets ADD COLUMN IF NOT EXISTS guarded boolean NOT NULL DEFAULT false")
    op.get_bind().exec_driver_sql(COMMIT)


def downgrade() -> None:
    op.get_bind().exec_driver_sql(COMMIT_BEFORE)
    op.execute("ALTER TABLE write_sets DROP COLUMN guarded")
