"""Delegation tokens with their master keys, and those that Hive servers keep here for themselves."""

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.execute(
        """
        CREATE TABLE token_keys (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            key bytea NOT NULL,
            made_at timestamptz NOT NULL
        );
        CREATE SEQUENCE delegation_tokens_sequence_seq;
        CREATE TABLE delegation_tokens (
            identifier bytea PRIMARY KEY,
            sequence bigint NOT NULL,
            renewer text NOT NULL,
            valid_until timestamptz NOT NULL,
            expires timestamptz NOT NULL,
            key_id bigint NOT NULL REFERENCES token_keys (id)
        );
        CREATE INDEX delegation_tokens_valid_until_idx ON delegation_tokens (valid_until);
        CREATE INDEX delegation_tokens_key_id_idx ON delegation_tokens (key_id);
        CREATE TABLE hive_tokens (identifier text PRIMARY KEY, token text NOT NULL);
        CREATE TABLE hive_master_keys (id int PRIMARY KEY, key text NOT NULL);
        """
    )


def downgrade() -> None:
    """Drop the tables: clients get new tokens."""
    op.execute("DROP TABLE hive_master_keys, hive_tokens, delegation_tokens, token_keys")
    op.execute("DROP SEQUENCE delegation_tokens_sequence_seq")
