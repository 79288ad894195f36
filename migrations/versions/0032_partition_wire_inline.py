"""The bytes of a partition as an expression, whose plan a session keeps, instead of SQL functions in each other."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_PARAMETERS = (
    '"values" text[], create_time int, last_access_time int, parameters jsonb, write_id bigint, '
    "has_descriptor boolean, location text"
)


def upgrade() -> None:
    """The same bytes as before in a third of the time (10 us instead of 30): most of what a row's trigger costs."""
    op.execute(
        rf"""
CREATE OR REPLACE FUNCTION partition_wire({_PARAMETERS}) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN '\x0f00010b'::bytea || int4send(cardinality($1))
        || (SELECT coalesce(string_agg(int4send(octet_length(v)) || convert_to(v, 'UTF8'), '' ORDER BY n), '')
              FROM unnest($1) WITH ORDINALITY u (v, n))
        || '\x080004'::bytea || int4send($2)
        || '\x080005'::bytea || int4send($3)
        || '\x0d00070b0b'::bytea
        || (SELECT int4send(count(*)::int)
                || coalesce(string_agg(int4send(octet_length(key)) || convert_to(key, 'UTF8')
                                       || int4send(octet_length(value)) || convert_to(value, 'UTF8'), ''), '')
              FROM jsonb_each_text($4))
        || '\x0a000a'::bytea || int8send($5)
        || CASE WHEN $6 THEN '\x0c0006'::bytea
                             || coalesce('\x0b0002'::bytea || int4send(octet_length($7)) || convert_to($7, 'UTF8'), '')
           ELSE '' END;
END $$"""
    )


def downgrade() -> None:
    """As migration 0025 wrote it."""
    op.execute(r"""
        CREATE OR REPLACE FUNCTION partition_wire("values" text[], create_time int, last_access_time int, parameters jsonb,
                                       write_id bigint, has_descriptor boolean, location text)
        RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT '\x0f00010b'::bytea || int4send(cardinality($1))
                || (SELECT coalesce(string_agg(thrift_text(v), '' ORDER BY n), '')
                    FROM unnest($1) WITH ORDINALITY u (v, n))
                || '\x080004'::bytea || int4send(create_time)
                || '\x080005'::bytea || int4send(last_access_time)
                || '\x0d00070b0b'::bytea
                || (SELECT int4send(count(*)::int) || coalesce(string_agg(thrift_text(key) || thrift_text(value), ''), '')
                    FROM jsonb_each_text(parameters))
                || '\x0a000a'::bytea || int8send(write_id)
                || CASE WHEN has_descriptor THEN '\x0c0006'::bytea
                       || coalesce('\x0b0002'::bytea || thrift_text(location), '')
                   ELSE '' END
        $$""")
