"""A function that returns true for a transactional table; the function that commits calls it."""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

_IS_TRANSACTIONAL = """
CREATE FUNCTION is_transactional(parameters jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN coalesce(lower(parameters ->> 'transactional') = 'true', false)"""
_COMMIT = """
CREATE OR REPLACE FUNCTION commit_uncontended(
    ids bigint[], ordinary smallint[], light smallint[], require_write_ids boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    ready bigint;
    weighty boolean;
    wrote boolean;
    at_id bigint;
BEGIN
    SELECT count(*) FILTER (WHERE type = ANY(ordinary)), bool_or(type <> ALL(light)) INTO ready, weighty
    FROM (SELECT type FROM txns WHERE id = ANY(ids) AND state = 'open' ORDER BY id FOR UPDATE) AS mine;
    IF ready < cardinality(ids) THEN
        RETURN false;
    END IF;
    wrote := EXISTS (SELECT FROM txn_components WHERE txn_id = ANY(ids));
    IF wrote OR weighty OR EXISTS (SELECT FROM txn_write_ids WHERE txn_id = ANY(ids)) THEN
        SELECT next_txn_id - 1 INTO at_id FROM txn_counter FOR UPDATE;
    ELSE
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF wrote AND (
        EXISTS (
            SELECT FROM txn_components AS c JOIN write_sets AS w USING (catalog, db, "table", partition)
            WHERE c.txn_id = ANY(ids) AND c.operation IN ('u', 'd') AND w.commit_id >= c.txn_id)
        OR EXISTS (
            SELECT FROM txn_components WHERE txn_id = ANY(ids) AND operation IN ('u', 'd')
            GROUP BY catalog, db, "table", partition HAVING min(txn_id) < max(txn_id))
        OR require_write_ids AND EXISTS (
            SELECT FROM txn_components AS c
            WHERE txn_id = ANY(ids) AND write_id IS NULL AND (
                SELECT 1 FROM txn_write_ids AS w WHERE w.txn_id = c.txn_id AND w.catalog = c.catalog AND w.db = c.db
                AND w."table" = c."table") IS NULL AND (
                SELECT @ FROM tables AS t
                WHERE t.catalog = c.catalog AND t.db = c.db AND t.name = c."table")@))
    THEN
        RETURN false;
    END IF;
    PERFORM apply_commits(ids, ids, ids, at_id, wrote);
    RETURN true;
END $$;"""


def _commit(condition: str, compared: str) -> str:
    head, middle, tail = _COMMIT.split("@")
    return f"{head}{condition}{middle}{compared}{tail}"


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.get_bind().exec_driver_sql(_IS_TRANSACTIONAL)
    op.get_bind().exec_driver_sql(_commit("is_transactional(t.parameters)", ""))


def downgrade() -> None:
    """Bring the schema back to the revision before."""
    op.get_bind().exec_driver_sql(_commit("lower(t.parameters ->> 'transactional')", " = 'true'"))
    op.execute("DROP FUNCTION is_transactional")
